// The MDS client against a small MDS on a thread of its own, over real connections that the test
// cuts.
#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "fuse_client/mds_client.h"
#include "mds.capnp.h"

using namespace trainfs;
using namespace trainfs::client;
using namespace std::chrono_literals;

namespace {

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
    std::lock_guard lock(server_.world_.mutex);
    if (server_.world_.silent) return kj::NEVER_DONE;
    context.getResults().setValid(!server_.world_.forgetsSessions);
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

kj::Promise<void> FakeServer::accept(kj::ConnectionReceiver& listener) {
  for (;;) {
    auto stream = co_await listener.accept();
    connections_.push_back(kj::heap<Connection>(kj::mv(stream), kj::heap<MdsImpl>(*this)));
  }
}

class Events final : public MdsEvents {
 public:
  explicit Events(World& world) : world_(world) {}
  void sessionOpened(SessionId, uint32_t, bool fresh, bool, std::vector<InodeId> gone) override {
    world_.change([&] {
      freshSessions += fresh;
      removed = gone;
    });
  }
  void mapChanged(ClusterMap) override {}
  void recalled(std::function<void()> done) override {
    world_.change([&] { ++recalls; });
    std::thread(done).detach();  // from any thread
  }
  void mayCache() override {}
  void trusted(BootClock::time_point until) override {
    world_.change([&] { trustedUntil = until; });
  }
  void lapsed() override {
    world_.change([&] { lapses.push_back(BootClock::now()); });
  }
  std::vector<OpenFile> openFiles(Told) override { return {{InodeId{77}, true}}; }
  bool mayBeCaching() override { return false; }
  std::vector<FileLock> heldLocks() override { return {{.inode = {78}, .owner = 5}}; }
  std::vector<InodeId> removed;  // by the newest session
  uint32_t freshSessions = 0, recalls = 0;
  BootClock::time_point trustedUntil;
  std::vector<BootClock::time_point> lapses;

 private:
  World& world_;
};

// An answer that the test waits for.
template <typename T>
class Awaited {
 public:
  Answer<T> answer() {
    return [state = state_](Result<T> result) {
      std::lock_guard lock(state->mutex);
      ++state->times;
      state->result = std::move(result);
      state->changed.notify_all();
    };
  }
  int error() {
    std::unique_lock lock(state_->mutex);
    REQUIRE(state_->changed.wait_for(lock, kPatience, [&] { return state_->result.has_value(); }));
    REQUIRE(state_->times == 1);
    return state_->result->errnoOrZero();
  }
  bool there() {
    std::lock_guard lock(state_->mutex);
    return state_->result.has_value();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Result<T>> result;
    int times = 0;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

struct Fixture {
  World world;
  FakeServer server{world};
  Events events{world};
  std::unique_ptr<MdsClient> client;

  explicit Fixture(bool soft = false, std::chrono::milliseconds softTimeout = 60s,
                   const char* fsname = "testfs") {
    client = MdsClient::create(
        {.servers = {{"127.0.0.1", 1}, {"127.0.0.1", server.port()}},  // nobody at the first
         .fsname = fsname,
         .clientName = "test",
         .soft = soft,
         .softTimeout = softTimeout},
        events);
  }
  void connect() { REQUIRE(client->waitForSession(kPatience) == std::nullopt); }
  void mkdir(Awaited<Outcome>& made) {
    client->execute({}, CreateOp{.parent = kRootInode, .name = "d", .mode = S_IFDIR},
                    made.answer());
  }
};

}  // namespace

TEST_CASE("of several servers the one that answers is used; values and errors come back",
          "[client]") {
  Fixture f;
  f.connect();
  Awaited<Node> node, none;
  f.client->getattr(InodeId{9}, node.answer());
  f.client->lookup(kRootInode, "x", none.answer());
  CHECK(node.error() == 0);
  CHECK(none.error() == ENOENT);
}

TEST_CASE("a mutation whose answer was lost is sent again and executed once", "[client]") {
  Fixture f;
  f.connect();
  f.world.change([&] { f.world.losesReplies = true; });
  Awaited<Outcome> first, second;
  f.mkdir(first);
  CHECK(first.error() == 0);
  f.mkdir(second);
  CHECK(second.error() == 0);
  std::lock_guard lock(f.world.mutex);
  CHECK(f.world.executed == 2);
  CHECK(f.world.resent == 1);
  CHECK(f.world.resumed == 1);
  CHECK(f.world.sessions == 1);
  CHECK(f.world.opensResumed == std::vector<uint64_t>{77});
  CHECK(f.world.locksResumed == std::vector<uint64_t>{78});
}

TEST_CASE("a wait for a lock is the same one over any number of connections", "[client]") {
  Fixture f;
  f.connect();
  Awaited<Done> locked;
  f.client->lock({.inode = {9}}, true, locked.answer());
  REQUIRE(f.world.await([&] { return f.world.waits.size() == 1; }));
  f.server.cut();
  REQUIRE(f.world.await([&] { return f.world.waits.size() == 2; }));
  CHECK(f.world.waits[0] == f.world.waits[1]);
  CHECK(f.world.waits[0] != 0);
  f.world.change([&] { f.world.grants = true; });
  f.server.cut();
  CHECK(locked.error() == 0);
}

TEST_CASE("a wait is given up: the call is dropped, and the server has the last word", "[client]") {
  bool grants = GENERATE(false, true);
  Fixture f;
  f.connect();
  Awaited<Done> locked;
  auto wait = f.client->lock({.inode = {9}}, true, locked.answer());
  REQUIRE(f.world.await([&] { return f.world.waits.size() == 1; }));
  f.world.change([&] { f.world.grants = grants; });
  f.client->giveUp(wait);
  CHECK(locked.error() == (grants ? 0 : EINTR));
  REQUIRE(f.world.await([&] { return f.world.dropped == 1; }));
  CHECK(f.world.gaveUp == 1);
  f.client->giveUp(wait);  // too late to mean anything
  Awaited<Node> node;
  f.client->getattr(InodeId{9}, node.answer());
  CHECK(node.error() == 0);
}

TEST_CASE("a wait that is given up before there is a server never waits", "[client]") {
  Fixture f;
  Awaited<Done> locked;
  auto wait = f.client->lock({.inode = {9}}, true, locked.answer());
  f.client->giveUp(wait);
  f.connect();
  CHECK(locked.error() == EINTR);
}

TEST_CASE("the patience of a soft mount does not count the time that others hold a lock",
          "[client]") {
  Fixture f(true, 1500ms);
  f.connect();
  Awaited<Done> locked;
  f.client->lock({.inode = {9}}, true, locked.answer());
  REQUIRE(f.world.await([&] { return f.world.waits.size() == 1; }));
  std::this_thread::sleep_for(2s);
  f.server.cut();
  REQUIRE(f.world.await([&] { return f.world.waits.size() == 2; }));
  f.world.change([&] { f.world.grants = true; });
  f.server.cut();
  CHECK(locked.error() == 0);
}

TEST_CASE("what a soft mount gave up of locks is undone once the server answers", "[client]") {
  Fixture f(true, 500ms);
  f.connect();
  f.world.change([&] { f.world.refusesCalls = true; });
  Awaited<Done> locked, waited, unlocked;
  f.client->lock({.inode = {9}}, false, locked.answer());
  f.client->lock({.inode = {9}}, true, waited.answer());
  f.client->unlock({.inode = {9}}, unlocked.answer());
  CHECK(locked.error() == EIO);
  CHECK(waited.error() == EIO);
  CHECK(unlocked.error() == EIO);
  f.world.change([&] { f.world.refusesCalls = false; });
  CHECK(f.world.await([&] { return f.world.unlocked == 3 && f.world.gaveUp == 1; }));
  CHECK(f.world.waits.empty());
}

TEST_CASE(
    "many mutations from many threads, connections cut again and again: each is executed once",
    "[client]") {
  Fixture f;
  f.connect();
  constexpr int kThreads = 4, kEach = 300;
  std::atomic<int> answered{0}, failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i)
        f.client->execute({}, LinkOp{InodeId{2}, kRootInode, "l"}, [&](Result<Outcome> outcome) {
          if (!outcome) ++failed;
          f.world.change([&] { ++answered; });
        });
    });
  }
  for (auto& thread : threads) thread.join();
  for (int cuts = 0; cuts < 10 && answered < kThreads * kEach; ++cuts) {
    f.server.cut();
    int before = answered;
    f.world.await([&] { return answered > before || answered == kThreads * kEach; });
  }
  REQUIRE(f.world.await([&] { return answered == kThreads * kEach; }));
  CHECK(failed == 0);
  CHECK(f.world.executed == kThreads * kEach);
}

TEST_CASE(
    "after an eviction a new session goes on; what was sent in the old one and not answered is EIO",
    "[client]") {
  Fixture f;
  f.connect();
  f.world.change([&] { f.world.losesReplies = f.world.forgetsSessions = true; });
  Awaited<Outcome> lost, next;
  f.mkdir(lost);
  CHECK(lost.error() == EIO);
  f.mkdir(next);
  CHECK(next.error() == 0);
  std::lock_guard lock(f.world.mutex);
  CHECK(f.world.sessions == 2);
  CHECK(f.events.freshSessions == 2);
}

TEST_CASE("a server that cannot answer now is asked again", "[client]") {
  Fixture f;
  f.world.change([&] { f.world.refusesCalls = true; });
  f.connect();
  Awaited<Node> node;
  f.client->getattr(InodeId{9}, node.answer());
  REQUIRE(f.world.await([&] { return f.world.refused > 0; }));
  CHECK(!node.there());
  f.world.change([&] { f.world.refusesCalls = false; });
  CHECK(node.error() == 0);
}

TEST_CASE("a soft mount gives up", "[client]") {
  Fixture f(true, 200ms);
  f.world.change([&] { f.world.refusesCalls = true; });
  f.connect();
  Awaited<Node> node;
  f.client->getattr(InodeId{9}, node.answer());
  CHECK(node.error() == EIO);
}

TEST_CASE("what a soft mount has given up is not overtaken by later changes of the same",
          "[client]") {
  Fixture f(true, 200ms);
  f.connect();
  f.world.change([&] { f.world.refusesChanges = true; });
  Awaited<Outcome> first, second, other, last;
  f.mkdir(first);
  CHECK(first.error() == EIO);
  f.mkdir(second);  // in the same directory: not even sent
  CHECK(second.error() == EIO);
  {
    std::lock_guard lock(f.world.mutex);
    CHECK(f.world.slotsRefused.size() == 1);
  }
  f.client->execute({}, SetAttrOp{.inode = InodeId{9}}, other.answer());
  CHECK(f.world.await([&] { return f.world.slotsRefused.size() == 2; }));
  CHECK(other.error() == EIO);

  f.world.change([&] { f.world.refusesChanges = false; });
  CHECK(f.world.await([&] { return f.world.executed == 2; }));  // the first, and the other
  f.mkdir(last);
  CHECK(last.error() == 0);
}

TEST_CASE("what a server does not know or damages is an error, not a loop", "[client]") {
  Fixture f;
  f.connect();
  Awaited<std::string> link;
  Awaited<Node> node;
  f.client->readlink(InodeId{3}, link.answer());
  f.client->open(InodeId{3}, false, node.answer());
  CHECK(link.error() == EOPNOTSUPP);
  CHECK(node.error() == EIO);
}

TEST_CASE("a recall is answered with the open files once nothing is cached", "[client]") {
  Fixture f;
  f.connect();
  CHECK(f.server.recall() == std::vector<uint64_t>{77});
  CHECK(f.events.recalls == 1);
}

TEST_CASE("while no renewal is answered the trust in caches lapses; the next answer brings it back",
          "[client]") {
  Fixture f;
  f.connect();
  BootClock::time_point until;
  f.world.change([&] { f.world.silent = true, until = f.events.trustedUntil; });
  CHECK(until > BootClock::now());
  CHECK(until < BootClock::now() + 2s);  // the term
  REQUIRE(f.world.await([&] { return !f.events.lapses.empty(); }));
  f.world.change([&] {
    CHECK(f.events.lapses.front() > f.events.trustedUntil - 50ms);  // the loop's clock has steps
    CHECK(f.events.lapses.front() < f.events.trustedUntil + 500ms);
    until = f.events.trustedUntil;
    f.world.silent = false;
  });
  REQUIRE(f.world.await([&] { return f.events.trustedUntil > until; }));
  CHECK(f.events.trustedUntil > BootClock::now());
}

TEST_CASE("a server of another file system is named as the reason", "[client]") {
  Fixture f(false, 60s, "otherfs");
  auto reason = f.client->waitForSession(1s);
  REQUIRE(reason.has_value());
  CHECK(reason->find("'testfs'") != std::string::npos);
}

TEST_CASE("the end waits for mutations and tells the server", "[client]") {
  Fixture f;
  f.connect();
  Awaited<Outcome> made;
  f.mkdir(made);
  CHECK(f.client->end(kPatience));
  CHECK(made.there());
  CHECK(f.world.ended == 1);
  f.client->stop();
  Awaited<Node> late;
  f.client->getattr(InodeId{9}, late.answer());
  CHECK(late.error() == ESHUTDOWN);
}
