// The MDS client against a small MDS over real connections that the test cuts.
#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "fake_mds_server.h"
#include "fuse_client/mds_client.h"

using namespace trainfs;
using namespace trainfs::client;
using namespace trainfs::client::test;
using namespace std::chrono_literals;

namespace {

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
