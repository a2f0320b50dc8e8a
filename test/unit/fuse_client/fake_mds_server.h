// A small MDS on a thread of its own, over real connections, which the test cuts.
#pragma once

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <sys/stat.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "mds.capnp.h"

namespace trainfs::client::test {

using namespace std::chrono_literals;

constexpr auto kPatience = 20s;  // for what has to happen; never waited for in full when it does

// What the test sets and sees. Any thread.
struct World {
  std::mutex mutex;
  std::condition_variable changed;
  bool losesReplies = false;  // executes, then cuts the connection instead of answering
  bool forgetsSessions = false;
  bool refusesCalls = false;  // "cannot answer now"
  bool silent = false;        // answers neither a new connection nor a renewal
  bool refusesChanges = false;
  std::set<uint16_t> slotsRefused;
  uint32_t refused = 0, executed = 0, resent = 0, sessions = 0, resumed = 0, ended = 0;
  uint32_t renewals = 0;
  std::vector<uint64_t> opensResumed, locksResumed;
  bool grants = false;          // false: locks wait
  std::vector<uint64_t> waits;  // of calls for locks that wait, in order
  uint32_t dropped = 0, gaveUp = 0, unlocked = 0;
  std::map<uint16_t, uint64_t> slots;  // last sequence

  template <typename Condition>
  bool await(Condition condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kPatience, condition);
  }
  template <typename Change>
  void change(Change change) {
    {
      std::lock_guard lock(mutex);
      change();
    }
    changed.notify_all();
  }
};

class FakeServer {
 public:
  explicit FakeServer(World& world) : world_(world), thread_([this] { run(); }) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return port_ != 0; });
  }
  ~FakeServer() {
    stopping_ = true;
    thread_.join();
  }
  uint16_t port() const { return port_; }
  void cut() {
    onServer([&]() -> kj::Promise<void> {
      connections_.clear();
      return kj::READY_NOW;
    });
  }
  // Calls recall of the newest session; returns the open files that it answers.
  std::vector<uint64_t> recall() {
    std::vector<uint64_t> opens;
    onServer([&] {
      return callback_->recallRequest().send().then([&](auto response) {
        for (auto open : response.getOpens()) opens.push_back(open.getInode());
      });
    });
    return opens;
  }

 private:
  struct Connection {
    Connection(kj::Own<kj::AsyncIoStream> stream, rpc::Mds::Client mds)
        : stream(kj::mv(stream)),
          network(*this->stream, capnp::rpc::twoparty::Side::SERVER),
          system(capnp::makeRpcServer(network, kj::mv(mds))) {}
    kj::Own<kj::AsyncIoStream> stream;
    capnp::TwoPartyVatNetwork network;
    capnp::RpcSystem<capnp::rpc::twoparty::VatId> system;
  };
  class SessionImpl;
  class MdsImpl;

  // Runs a function on the server's thread and waits for its promise. Not by kj::Executor, whose
  // locks the thread sanitizer does not see.
  void onServer(std::function<kj::Promise<void>()> function) {
    std::promise<void> done;
    {
      std::lock_guard lock(mutex_);
      commands_.push_back({std::move(function), &done});
    }
    done.get_future().wait();
  }
  kj::Promise<void> runCommands(kj::Timer& timer) {
    while (!stopping_) {
      decltype(commands_) commands;
      {
        std::lock_guard lock(mutex_);
        commands.swap(commands_);
      }
      for (auto& [function, done] : commands) {
        co_await function();
        done->set_value();
      }
      co_await timer.afterDelay(1 * kj::MILLISECONDS);
    }
  }

  void run() {
    auto io = kj::setupAsyncIo();
    auto address = io.provider->getNetwork().parseAddress("127.0.0.1", 0).wait(io.waitScope);
    auto listener = address->listen();
    {
      std::lock_guard lock(mutex_);
      port_ = static_cast<uint16_t>(listener->getPort());
    }
    changed_.notify_all();
    accept(*listener).exclusiveJoin(runCommands(io.provider->getTimer())).wait(io.waitScope);
    connections_.clear();
    callback_ = std::nullopt;
  }
  kj::Promise<void> accept(kj::ConnectionReceiver& listener);
  kj::Promise<void> cutSoon() {
    // Not from within a call of the connection that goes.
    return kj::evalLast([this] { connections_.clear(); });
  }

  World& world_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::vector<std::pair<std::function<kj::Promise<void>()>, std::promise<void>*>> commands_;
  // The server's thread.
  std::vector<kj::Own<Connection>> connections_;
  std::optional<rpc::ClientCallback::Client> callback_;
  kj::Promise<void> cutting_ = nullptr;
  std::thread thread_;
};

class FakeServer::SessionImpl final : public rpc::Session::Server {
 public:
  explicit SessionImpl(FakeServer& server) : server_(server) {}

  kj::Promise<void> execute(ExecuteContext context) override {
    auto& world = server_.world_;
    auto params = context.getParams();
    bool lose = false, refuses = false;
    world.change([&] {
      refuses = world.refusesChanges;
      if (refuses) world.slotsRefused.insert(params.getSlot());
      if (refuses) return;
      auto& last = world.slots[params.getSlot()];
      if (params.getSequence() == last) {
        ++world.resent;
      } else {
        KJ_REQUIRE(params.getSequence() == last + 1, "a sequence that is not the next");
        last = params.getSequence();
        ++world.executed;
      }
      lose = std::exchange(world.losesReplies, false);
    });
    if (refuses) return KJ_EXCEPTION(OVERLOADED, "not now");
    if (lose) {
      server_.cutting_ = server_.cutSoon().eagerlyEvaluate(nullptr);
      return kj::NEVER_DONE;
    }
    auto attributes = context.getResults().initReply().initNode().initAttributes();
    attributes.setInode(5);
    attributes.setMode(S_IFDIR | 0755);
    return kj::READY_NOW;
  }
  kj::Promise<void> getattr(GetattrContext context) override {
    bool refuses = false;
    server_.world_.change([&] {
      refuses = server_.world_.refusesCalls;
      server_.world_.refused += refuses;
    });
    if (refuses) return KJ_EXCEPTION(OVERLOADED, "not now");
    auto attributes = context.getResults().initNode().initAttributes();
    attributes.setInode(context.getParams().getInode());
    attributes.setMode(S_IFREG);
    return kj::READY_NOW;
  }
  kj::Promise<void> lookup(LookupContext context) override {
    context.getResults().setError(ENOENT);
    return kj::READY_NOW;
  }
  kj::Promise<void> readlink(ReadlinkContext) override {
    return KJ_EXCEPTION(UNIMPLEMENTED, "no links");
  }
  kj::Promise<void> open(OpenContext context) override {
    // A layout that is none.
    auto node = context.getResults().initNode();
    node.initAttributes().setInode(3);
    node.initLayout(3);
    return kj::READY_NOW;
  }
  // Waits until it is dropped, unless the world grants locks.
  kj::Promise<void> lock(LockContext context) override {
    auto& world = server_.world_;
    auto params = context.getParams();
    bool waits = false, refuses = false;
    world.change([&] {
      refuses = world.refusesCalls;
      if (refuses) return;
      waits = !params.getGiveUp() && !world.grants;
      if (waits) world.waits.push_back(params.getWait());
      world.gaveUp += params.getGiveUp();
      if (params.getGiveUp()) context.getResults().setError(world.grants ? 0 : EINTR);
    });
    if (refuses) return KJ_EXCEPTION(OVERLOADED, "not now");
    if (!waits) return kj::READY_NOW;
    return kj::Promise<void>(kj::NEVER_DONE).attach(kj::defer([&world] {
      world.change([&] { ++world.dropped; });
    }));
  }
  kj::Promise<void> unlock(UnlockContext) override {
    bool refuses = false;
    server_.world_.change([&] {
      refuses = server_.world_.refusesCalls;
      server_.world_.unlocked += !refuses;
    });
    if (refuses) return KJ_EXCEPTION(OVERLOADED, "not now");
    return kj::READY_NOW;
  }
  kj::Promise<void> renew(RenewContext context) override {
    auto& world = server_.world_;
    world.change([&] { ++world.renewals; });
    std::lock_guard lock(world.mutex);
    if (world.silent) return kj::NEVER_DONE;
    context.getResults().setValid(!world.forgetsSessions);
    return kj::READY_NOW;
  }
  kj::Promise<void> end(EndContext) override {
    server_.world_.change([&] { ++server_.world_.ended; });
    return kj::READY_NOW;
  }

 private:
  FakeServer& server_;
};

class FakeServer::MdsImpl final : public rpc::Mds::Server {
 public:
  explicit MdsImpl(FakeServer& server) : server_(server) {}

  kj::Promise<void> hello(HelloContext context) override {
    {
      std::lock_guard lock(server_.world_.mutex);
      if (server_.world_.silent) return kj::NEVER_DONE;
    }
    auto results = context.getResults();
    results.setProtocolVersion(rpc::PROTOCOL_VERSION);
    results.setFsname("testfs");
    return kj::READY_NOW;
  }
  kj::Promise<void> openSession(OpenSessionContext context) override {
    auto& world = server_.world_;
    auto request = context.getParams().getRequest();
    auto opened = context.getResults().initOpened();
    bool stale = false;
    world.change([&] {
      stale = request.getResumeId() != 0 && std::exchange(world.forgetsSessions, false);
      if (stale) {
        world.slots.clear();
        return;
      }
      request.getResumeId() != 0 ? ++world.resumed : ++world.sessions;
      world.opensResumed.clear();
      for (auto open : request.getOpens()) world.opensResumed.push_back(open.getInode());
      world.locksResumed.clear();
      for (auto lock : request.getLocks()) world.locksResumed.push_back(lock.getInode());
      opened.setId(world.sessions);
    });
    if (stale) {
      opened.setError(ESTALE);
      return kj::READY_NOW;
    }
    server_.callback_ = request.getCallback();
    opened.setSession(kj::heap<SessionImpl>(server_));
    opened.setEpoch(1);
    opened.setTermMilliseconds(2000);
    opened.setMayCache(true);
    return kj::READY_NOW;
  }

 private:
  FakeServer& server_;
};

inline kj::Promise<void> FakeServer::accept(kj::ConnectionReceiver& listener) {
  for (;;) {
    auto stream = co_await listener.accept();
    connections_.push_back(kj::heap<Connection>(kj::mv(stream), kj::heap<MdsImpl>(*this)));
  }
}

}  // namespace trainfs::client::test
