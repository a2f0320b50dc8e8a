#include "fuse_client/mds_client.h"

#include <kj/async-unix.h>
#include <kj/debug.h>
#include <spdlog/spdlog.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "fuse_client/mds_call.h"
#include "fuse_client/mds_lock_call.h"
#include "fuse_client/mds_session.h"
#include "fuse_client/mds_wire.h"

namespace trainfs::client {

namespace {

// Hands an answer on exactly once.
template <typename T>
class Once {
 public:
  explicit Once(Answer<T> answer) : answer_(std::move(answer)) {}
  void operator()(Result<T> result) {
    if (auto answer = std::exchange(answer_, nullptr)) answer(std::move(result));
  }

 private:
  Answer<T> answer_;
};

// The value that an error-or-value response carries. What cannot be decoded is a broken peer: EIO,
// told once.
template <typename Response, typename Decode>
auto take(Response& response, Decode& decode) -> Result<decltype(decode(response))> {
  if (int error = response.getError(); error != 0) return Errno(error);
  try {
    return decode(response);
  } catch (const kj::Exception& exception) {
    spdlog::error("the MDS answered with rubbish: {}", exception.getDescription().cStr());
    return Errno(EIO);
  }
}

// A question: changes nothing (or is idempotent by nature), may be asked any number of times.
template <typename T, typename Ask, typename Decode>
class Question final : public MdsCall {
 public:
  Question(Ask ask, Decode decode, Answer<T> answer)
      : ask_(std::move(ask)), decode_(std::move(decode)), answer_(std::move(answer)) {}

  kj::Promise<void> send(rpc::Session::Client& session) override {
    auto response = co_await ask_(session);
    if constexpr (requires { response.getError(); }) {
      answer_(take(response, decode_));
    } else {
      answer_(decode_(response));
    }
  }
  void fail(int code) override { answer_(Errno(code)); }

 private:
  Ask ask_;
  Decode decode_;
  Once<T> answer_;
};

// Has its turn when a change of the inode would have.
class Settled final : public MdsCall {
 public:
  Settled(InodeId inode, Answer<Done> answer) : answer_(std::move(answer)) { touched = {inode}; }
  kj::Promise<void> send(rpc::Session::Client&) override {
    answer_(Done{});
    return kj::READY_NOW;
  }
  void fail(int code) override { answer_(Errno(code)); }

 private:
  Once<Done> answer_;
};

// Inodes that an operation changes, as far as the caller knows.
struct Touched {
  std::vector<InodeId> operator()(const CreateOp& op) { return {op.parent}; }
  std::vector<InodeId> operator()(const LinkOp& op) { return {op.inode, op.parent}; }
  std::vector<InodeId> operator()(const UnlinkOp& op) { return {op.parent}; }
  std::vector<InodeId> operator()(const RmdirOp& op) { return {op.parent}; }
  std::vector<InodeId> operator()(const RenameOp& op) { return {op.parent, op.newParent}; }
  std::vector<InodeId> operator()(const auto& op) { return {op.inode}; }
};

class Mutation final : public MdsCall {
 public:
  Mutation(Identity identity, Operation op, Answer<Outcome> answer)
      : identity_(std::move(identity)), op_(std::move(op)), answer_(std::move(answer)) {
    mutation = true;
    touched = std::visit(Touched{}, op_);
  }

  kj::Promise<void> send(rpc::Session::Client& session) override {
    auto request = session.executeRequest();
    request.setSlot(slot);
    request.setSequence(sequence);
    encodeIdentity(identity_, request.initIdentity());
    encodeOperation(op_, request.initOp());
    auto response = co_await request.send();
    auto reply = response.getReply();
    auto decode = [](rpc::Reply::Reader& reader) { return decodeOutcome(reader); };
    answer_(take(reply, decode));
  }
  void fail(int code) override { answer_(Errno(code)); }

 private:
  Identity identity_;
  Operation op_;
  Once<Outcome> answer_;
};

class KjMdsClient final : public MdsClient {
 public:
  KjMdsClient(MdsClientOptions options, MdsEvents& events)
      : options_(std::move(options)), events_(events), thread_([this] { run(); }) {}

  ~KjMdsClient() noexcept override { stop(); }

  void stop() override {
    inbox_.post([this] { stop_->fulfill(); });
    if (thread_.joinable()) thread_.join();
  }

  std::optional<std::string> waitForSession(std::chrono::milliseconds patience) override {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, patience, [&] { return open_; })) return std::nullopt;
    return failure_.empty() ? std::string("no MDS has answered yet") : failure_;
  }

  bool end(std::chrono::milliseconds patience) override {
    inbox_.post([this] {
      ending_ = session_->end()
                    .then([this] { noteEnded(); },
                          [this](kj::Exception&& exception) {
                            spdlog::warn("the session could not be ended: {}",
                                         exception.getDescription().cStr());
                            noteEnded();
                          })
                    .eagerlyEvaluate(nullptr);
    });
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return ended_; });
  }

  void checkSession() override {
    inbox_.post([this] { session_->check(); });
  }

  void execute(Identity identity, Operation op, Answer<Outcome> answer, Urgency urgency) override {
    auto call = std::make_unique<Mutation>(std::move(identity), std::move(op), std::move(answer));
    call->urgent = urgency == Urgency::kUrgent;
    inbox_.put(std::move(call));
  }

  void lookup(InodeId parent, std::string name, Answer<Node> answer) override {
    askNode(
        [parent, name = std::move(name)](rpc::Session::Client& session) {
          auto request = session.lookupRequest();
          request.setParent(parent.value);
          request.setName({name.c_str(), name.size()});
          return request.send();
        },
        std::move(answer));
  }
  void getattr(InodeId inode, Answer<Node> answer) override {
    askNode(
        [inode](rpc::Session::Client& session) {
          auto request = session.getattrRequest();
          request.setInode(inode.value);
          return request.send();
        },
        std::move(answer));
  }
  void open(InodeId inode, bool writing, Answer<Node> answer) override {
    askNode(
        [inode, writing](rpc::Session::Client& session) {
          auto request = session.openRequest();
          request.setInode(inode.value);
          request.setWriting(writing);
          return request.send();
        },
        std::move(answer));
  }
  void instantiate(InodeId inode, uint8_t component, Answer<Node> answer) override {
    askNode(
        [inode, component](rpc::Session::Client& session) {
          auto request = session.instantiateRequest();
          request.setInode(inode.value);
          request.setComponent(component);
          return request.send();
        },
        std::move(answer));
  }
  void readdir(InodeId inode, uint64_t cookie, uint32_t entriesMax,
               Answer<DirPage> answer) override {
    ask<DirPage>(
        [=](rpc::Session::Client& session) {
          auto request = session.readdirRequest();
          request.setInode(inode.value);
          request.setCookie(cookie);
          request.setEntriesMax(entriesMax);
          return request.send();
        },
        [=](auto& response) {
          return decodePage(response.getEntries(), response.getEnd(), entriesMax);
        },
        std::move(answer));
  }
  void readlink(InodeId inode, Answer<std::string> answer) override {
    ask<std::string>(
        [=](rpc::Session::Client& session) {
          auto request = session.readlinkRequest();
          request.setInode(inode.value);
          return request.send();
        },
        [](auto& response) { return toString(response.getTarget()); }, std::move(answer));
  }
  void getxattr(InodeId inode, std::string name, Answer<std::string> answer) override {
    ask<std::string>(
        [inode, name = std::move(name)](rpc::Session::Client& session) {
          auto request = session.getxattrRequest();
          request.setInode(inode.value);
          request.setName({name.c_str(), name.size()});
          return request.send();
        },
        [](auto& response) { return toString(response.getValue()); }, std::move(answer));
  }
  void listxattr(InodeId inode, Answer<std::vector<std::string>> answer) override {
    ask<std::vector<std::string>>(
        [=](rpc::Session::Client& session) {
          auto request = session.listxattrRequest();
          request.setInode(inode.value);
          return request.send();
        },
        [](auto& response) { return decodeXattrNames(response.getNames()); }, std::move(answer));
  }
  void names(InodeId inode, InodeId root, NameCursor after, Answer<NamesPage> answer) override {
    ask<NamesPage>(
        [=](rpc::Session::Client& session) {
          auto request = session.namesRequest();
          request.setInode(inode.value);
          request.setRoot(root.value);
          request.initAfter().setParent(after.parent);
          request.getAfter().setPlace(after.place);
          return request.send();
        },
        [](auto& response) { return decodeNames(response); }, std::move(answer));
  }
  void statfs(Answer<FsStats> answer) override {
    ask<FsStats>([](rpc::Session::Client& session) { return session.statfsRequest().send(); },
                 [](auto& response) { return decodeStats(response.getStats()); },
                 std::move(answer));
  }
  void release(InodeId inode, Answer<Done> answer) override {
    ask<Done>(
        [=](rpc::Session::Client& session) {
          auto request = session.releaseRequest();
          request.setInode(inode.value);
          return request.send();
        },
        [](auto&) { return Done{}; }, std::move(answer));
  }
  void settled(InodeId inode, Answer<Done> answer) override {
    inbox_.put(std::make_unique<Settled>(inode, std::move(answer)));
  }
  std::shared_ptr<LockWait> lock(const FileLock& lock, bool waits, Answer<Done> answer) override {
    auto wait = std::make_shared<LockWait>(waits ? ++lockWaits_ : 0);
    inbox_.put(std::make_unique<LockCall>(lock, wait, std::move(answer)));
    return wait;
  }
  void giveUp(std::shared_ptr<LockWait> wait) override {
    inbox_.post([wait = std::move(wait)] { LockCall::giveUp(*wait); });
  }
  void unlock(const FileLock& lock, Answer<Done> answer) override {
    inbox_.put(std::make_unique<UnlockCall>(lock, std::move(answer)));
  }
  void testLock(const FileLock& lock, Answer<std::optional<FileLock>> answer) override {
    ask<std::optional<FileLock>>(
        [=](rpc::Session::Client& session) {
          auto request = session.testLockRequest();
          encodeLock(lock, request.initLock());
          return request.send();
        },
        [](auto& response) {
          return response.getFound() ? std::optional(requireLock(response.getConflict()))
                                     : std::nullopt;
        },
        std::move(answer));
  }

 private:
  static std::string toString(capnp::Data::Reader data) {
    return {reinterpret_cast<const char*>(data.begin()), data.size()};
  }

  template <typename T, typename Ask, typename Decode>
  void ask(Ask ask, Decode decode, Answer<T> answer) {
    inbox_.put(std::make_unique<Question<T, Ask, Decode>>(std::move(ask), std::move(decode),
                                                          std::move(answer)));
  }
  template <typename Ask>
  void askNode(Ask question, Answer<Node> answer) {
    ask<Node>(
        std::move(question), [](auto& response) { return decodeNode(response.getNode()); },
        std::move(answer));
  }

  void noteEnded() {
    std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  void noteFirst(std::optional<std::string> failure) {
    std::lock_guard lock(mutex_);
    if (failure) {
      failure_ = std::move(*failure);
    } else {
      open_ = true;
      changed_.notify_all();
    }
  }

  // The MDS thread.
  void run() {
    auto io = kj::setupAsyncIo();
    auto paf = kj::newPromiseAndFulfiller<void>();
    stop_ = kj::mv(paf.fulfiller);
    {
      MdsSession session(options_, events_, inbox_, io,
                         [this](auto failure) { noteFirst(std::move(failure)); });
      session_ = &session;
      auto pump = pumpInbox(io.unixEventPort);
      pump.exclusiveJoin(kj::mv(paf.promise)).wait(io.waitScope);
      ending_ = nullptr;
    }
    inbox_.close();
  }

  kj::Promise<void> pumpInbox(kj::UnixEventPort& port) {
    kj::UnixEventPort::FdObserver observer(port, inbox_.wakeFd(),
                                           kj::UnixEventPort::FdObserver::OBSERVE_READ);
    for (;;) {
      auto readable = observer.whenBecomesReadable();
      auto batch = inbox_.take();
      // Calls first: a function that was posted after some may have to wait for them (see end()).
      for (auto& call : batch.calls) session_->submit(std::move(call));
      for (auto& function : batch.functions) function();
      bool idle = batch.calls.empty() && batch.functions.empty();
      co_await (idle ? kj::mv(readable) : kj::evalLater([] {}));  // lets answers in between bursts
    }
  }

  const MdsClientOptions options_;
  MdsEvents& events_;
  MdsInbox inbox_;
  std::atomic<uint64_t> lockWaits_{0};  // numbers them

  // MDS thread.
  MdsSession* session_ = nullptr;
  kj::Own<kj::PromiseFulfiller<void>> stop_;
  kj::Promise<void> ending_ = nullptr;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false, ended_ = false;
  std::string failure_;

  std::thread thread_;
};

}  // namespace

std::unique_ptr<MdsClient> MdsClient::create(MdsClientOptions options, MdsEvents& events) {
  return std::make_unique<KjMdsClient>(std::move(options), events);
}

}  // namespace trainfs::client
