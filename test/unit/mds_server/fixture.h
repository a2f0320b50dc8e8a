// An MDS in this process behind a real port, clients and OSTs that reach it over real connections,
// and a clock that moves only when the test says so. One event loop for all of them.
#pragma once

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <kj/timer.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/mem_store.h"
#include "mds.capnp.h"
#include "mds/lmdb_log.h"
#include "mds/server.h"

namespace trainfs::mds::test {

// A callback that notes what it is told and answers when the test lets it.
class FakeCallback final : public rpc::ClientCallback::Server {
 public:
  struct Notes {
    std::vector<std::string> events;  // "recall", "mayCache"
      uint64_t mapVersion = 0;
    std::vector<OpenedFile> opens;  // the answer to a recall
    bool answers = true;            // false: hold recalls back
    std::vector<kj::Own<kj::PromiseFulfiller<void>>> held;
    void release() {
      for (auto& recall : held) recall->fulfill();
      held.clear();
    }
  };
  explicit FakeCallback(std::shared_ptr<Notes> notes) : notes_(std::move(notes)) {}
  kj::Promise<void> recall(RecallContext context) override;
  kj::Promise<void> mayCache(MayCacheContext) override;
  kj::Promise<void> mapChanged(MapChangedContext context) override;

 private:
  std::shared_ptr<Notes> notes_;
};

class FakeOst final : public rpc::OssControl::Server {
 public:
  struct Notes {
    std::map<std::string, uint64_t> objects;  // hex id -> size
    std::vector<std::string> destroyed;       // hex ids
    std::vector<uint64_t> fenced;             // sessions
    std::set<std::string> damaged;            // hex ids that cannot be looked at
    std::set<std::string> uncuttable;         // hex ids
    int stats = 0, truncations = 0;           // calls
    bool answersFences = true;                // false: hold them back
    bool cuts = true;                         // false: hold what is to be cut back
    std::vector<kj::Own<kj::PromiseFulfiller<void>>> held;
    void release() {
      for (auto& call : held) call->fulfill();
      held.clear();
    }
  };
  explicit FakeOst(std::shared_ptr<Notes> notes) : notes_(std::move(notes)) {}
  kj::Promise<void> destroy(DestroyContext context) override;
  kj::Promise<void> stat(StatContext context) override;
  kj::Promise<void> fence(FenceContext context) override;
  kj::Promise<void> truncate(TruncateContext context) override;

 private:
  std::shared_ptr<Notes> notes_;
};

class Fixture;

// A connection of its own.
struct Connection {
  Connection(Fixture& fixture);
  kj::Own<kj::AsyncIoStream> stream;
  capnp::TwoPartyClient rpc;
  rpc::Mds::Client mds;
};

class Client {
 public:
  Client(Fixture& fixture, std::string name);

  // Opens a session and waits until it is.
  void open();
  void resume(std::vector<OpenedFile> opens, std::vector<FileLock> locks = {});
  kj::Promise<void> opening(uint64_t resumeId = 0, std::vector<OpenedFile> opens = {},
                            std::vector<FileLock> locks = {});
  void disconnect();
  bool renew();

  // All wait for the reply. A slot of its own for each request unless `again` names one.
  using Reply = capnp::Response<rpc::Session::ExecuteResults>;
  Reply execute(const std::function<void(rpc::Operation::Builder)>& fill);
  Reply executeAs(uint16_t slot, uint64_t sequence,
                  const std::function<void(rpc::Operation::Builder)>& fill);
  InodeId create(const std::string& name, bool writing = false);
  int unlink(const std::string& name, std::vector<InodeId> keepOpen = {});
  // Does not wait.
  kj::Promise<int> unlinking(const std::string& name);
  int openFile(InodeId inode, bool writing = false);
  void release(InodeId inode);
  int report(InodeId inode, uint64_t sizeBytes, bool stillWriting, uint64_t settings = 0);
  int truncate(InodeId inode, uint64_t sizeBytes);  // cuts no objects
  capnp::Response<rpc::Session::GetattrResults> getattr(InodeId inode);
  capnp::Response<rpc::Session::LookupResults> lookup(const std::string& name);
  std::vector<std::string> list();

  Fixture& fixture;
  std::string name;
  std::shared_ptr<FakeCallback::Notes> notes = std::make_shared<FakeCallback::Notes>();
  std::unique_ptr<Connection> connection;
  kj::Maybe<rpc::Session::Client> session;
  uint64_t id = 0;
  uint32_t epoch = 0;
  bool mayCache = false;
  int error = 0;
  std::string message;
  std::vector<uint64_t> removed;
  uint64_t mapVersion = 0;
  uint64_t resumptions = 0;  // asked for
  bool caching = false;      // what a resumption says of it

 private:
  uint64_t sequence_ = 0;
};

class OstClient {
 public:
  OstClient(Fixture& fixture, uint32_t index)
      : port(7180 + index), fixture_(fixture), index_(index) {}
  // Returns the errno; the message in `message`.
  int registerOst(const std::string& uuid = "");
  void renew();
  bool checkSession(uint64_t session, uint32_t epoch);
  void disconnect();

  std::shared_ptr<FakeOst::Notes> notes = std::make_shared<FakeOst::Notes>();
  std::string message;
  uint16_t port;
  uint64_t start = 1, acceptedStart = 0;  // of the OST
  bool olderCopy = false;

 private:
  Fixture& fixture_;
  uint32_t index_;
  std::unique_ptr<Connection> connection_;
  kj::Maybe<rpc::OstLease::Client> lease_;
};

class Fixture {
 public:
  Fixture();
  ~Fixture();
  void start();
  void stop();
  void restart() { stop(), start(); }

  // Moves the clock in steps, letting everything run that comes due.
  void advance(kj::Duration duration);
  // Runs the loop, without moving the clock, until the condition holds. Fails the test after a
  // while.
  void until(const std::function<bool()>& condition);
  // Runs the loop until nothing moves any more.
  void settle();
  // What was given to the log before is answered.
  void passThroughLog();

  kj::AsyncIoContext io = kj::setupAsyncIo();
  kj::TimerImpl timer{kj::origin<kj::TimePoint>() + 1000 * kj::SECONDS};
  MemStore store;
  ServerOptions options;
  kj::Own<LmdbLog> log;
  kj::Own<Server> server;
};

// A file "f" that `a` writes, on the one OST; `b` is there, too.
struct SharedFile {
  explicit SharedFile(Fixture& fixture);
  OstClient ost;
  Client a, b;
  InodeId file;
};

// All objects of the file, as hex names.
std::vector<std::string> objectsOf(Fixture& fixture, InodeId inode);

}  // namespace trainfs::mds::test
