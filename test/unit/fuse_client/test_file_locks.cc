// What a mount remembers of its callers' locks, and what it asks of the MDS for them.
#include <catch2/catch_test_macros.hpp>

#include "fake_servers.h"
#include "fuse_client/file_locks.h"

using namespace trainfs;
using namespace trainfs::client;
using namespace trainfs::client::test;

namespace {

using Asked = std::vector<std::string>;

FileLock record(uint64_t owner, LockRange range = {}, LockMode mode = LockMode::kExclusive) {
  return {{7}, LockKind::kRecord, owner, range, mode, 99};
}
FileLock whole(uint64_t owner, LockMode mode = LockMode::kExclusive) {
  return {{7}, LockKind::kWhole, owner, {}, mode, 99};
}

struct Fixture {
  Script script;
  FakeMds mds{script};
  HeldLocks held;
  Statistics statistics;
  std::vector<std::function<void()>> abandoned;  // what waits for what killed callers left
  bool mustWait = false;
  FileLocks locks{mds, held, statistics, [this](InodeId, std::function<void()> next) {
                    if (!mustWait) return next();
                    abandoned.push_back(std::move(next));
                  }};
  int handle = 0, other = 0;
  int error = -1;

  // Locks, and notes the outcome.
  void lock(const FileLock& lock, const int& through, bool known = true) {
    error = -1;
    locks.lock(lock, &through, false, [this, known](Status status) {
      error = status.errnoOrZero();
      return known;
    });
    script.answer("lock");
  }
};

}  // namespace

TEST_CASE("what is granted is remembered for a server that loses it", "[client]") {
  Fixture f;
  f.lock(record(1, {0, 9}), f.handle);
  f.lock(record(1, {5, 5}, LockMode::kShared), f.handle);
  f.lock(whole(2), f.handle);
  CHECK(f.held.all() == std::vector<FileLock>{record(1, {0, 4}),
                                              record(1, {5, 5}, LockMode::kShared),
                                              record(1, {6, 9}), whole(2)});
  f.mds.lockError = EAGAIN;
  f.lock(record(3), f.handle);
  CHECK(f.error == EAGAIN);
  CHECK(f.held.all().size() == 4);
  f.locks.unlock(record(1, {0, 5}), [](Status) {});
  CHECK(f.held.all().size() == 4);  // until the MDS has said so
  f.script.answer("unlock");
  CHECK(f.held.all() == std::vector<FileLock>{record(1, {6, 9}), whole(2)});
}

TEST_CASE("a lock whose caller is gone is let go of", "[client]") {
  Fixture f;
  f.lock(record(1, {3, 4}), f.handle, /*known=*/false);
  CHECK(f.mds.unlocked == std::vector<FileLock>{record(1, {3, 4})});
  f.script.answer("unlock");
  CHECK(f.held.all().empty());
}

TEST_CASE("who has another lock when one fails gets no more before he has let go of it",
          "[client]") {
  Fixture f;
  f.lock(record(1, {0, 9}), f.handle);
  f.mds.lockError = EIO;
  f.lock(record(1, {20, 29}), f.handle);
  CHECK(f.error == EIO);
  f.mds.lockError = 0;
  f.lock(record(1, {20, 29}), f.handle);
  CHECK(f.error == EIO);
  f.locks.unlock(record(1, {20, 29}), [](Status) {});
  CHECK(f.mds.unlocked == std::vector<FileLock>{{.inode = {7}, .owner = 1}});
  f.script.answer("unlock");
  f.lock(record(1, {20, 29}), f.handle);
  CHECK(f.error == 0);
}

TEST_CASE("what is on its way for an owner who is gone does not touch the next of his number",
          "[client]") {
  Fixture f;
  int answers = 0;
  auto asking = f.locks.lock(record(5, {0, 9}), &f.handle, true, [&](Status) {
    ++answers;
    return false;
  });
  f.locks.abandon(*asking);       // he is killed
  f.locks.closed({7}, 5, [] {});  // and his process ends
  f.mds.named = {};
  auto next = f.locks.lock(record(5, {0, 9}), &f.other, true, [&](Status) { return true; });
  CHECK(f.mds.named != record(5, {0, 9}).owner);
  f.script.answer("lock");  // the first: it had been granted
  CHECK(answers == 1);
  REQUIRE(f.mds.unlocked.size() == 1);
  CHECK(f.mds.unlocked.front().owner != f.mds.named);
  f.script.answer("unlock");
  f.script.answer("lock");
  CHECK(f.held.all().size() == 1);
  CHECK(f.held.all().front().owner == f.mds.named);
}

TEST_CASE("an owner has one name in all files, for circles to be found", "[client]") {
  Fixture f;
  f.lock(record(5), f.handle);
  auto first = f.mds.named;
  auto elsewhere = record(5);
  elsewhere.inode = {8};
  f.lock(elsewhere, f.other);
  CHECK(f.mds.named == first);
}

TEST_CASE("a lock is let go of after what a killed caller has left under way", "[client]") {
  Fixture f;
  f.lock(record(1), f.handle);
  f.mustWait = true;
  bool done = false;
  f.locks.closed({7}, 1, [&] { done = true; });
  CHECK(f.mds.unlocked.empty());
  REQUIRE(f.abandoned.size() == 1);
  f.abandoned.front()();
  f.script.answer("unlock");
  CHECK(done);
  CHECK(f.held.all().empty());
}

TEST_CASE("who cannot change the mode of a flock has none", "[client]") {
  Fixture f;
  f.lock(whole(1, LockMode::kShared), f.handle);
  f.mds.lockError = EAGAIN;
  f.locks.lock(whole(1), &f.handle, false, [](Status) { return true; });
  CHECK(f.held.all().empty());  // also to be claimed, as soon as it is asked for
  f.script.answer("lock");
  CHECK(f.held.all().empty());
  CHECK(f.mds.unlocked.empty());  // it is the MDS that says so
}

TEST_CASE("a process that closes a file in any way loses its record locks, and no others",
          "[client]") {
  Fixture f;
  bool done = false;
  f.locks.closed({7}, 1, [&] { done = true; });
  CHECK(done);  // without a word to the MDS
  f.lock(record(1, {0, 3}), f.handle);
  f.lock(record(1, {6, 8}), f.other);
  f.lock(record(2, {10, 10}), f.handle);
  f.lock(whole(3), f.handle);
  done = false;
  f.locks.closed({7}, 1, [&] { done = true; });
  CHECK(!done);
  f.script.answer("unlock");
  CHECK(done);
  CHECK(f.mds.unlocked.front().range == LockRange{});
  CHECK(f.held.all() == std::vector<FileLock>{record(2, {10, 10}), whole(3)});
}

TEST_CASE("what was locked through a description goes with it", "[client]") {
  Fixture f;
  f.lock(record(5), f.handle);  // no process has closed: OFD locks
  f.lock(whole(5), f.handle);
  f.locks.ended({7}, &f.other);
  CHECK(f.held.all().size() == 2);
  f.locks.ended({7}, &f.handle);
  CHECK(f.held.all().empty());
  CHECK(f.mds.unlocked.size() == 2);
}

TEST_CASE("the end of a description takes nothing that its process locked elsewhere later",
          "[client]") {
  Fixture f;
  f.lock(record(1), f.handle);
  f.locks.closed({7}, 1, [] {});
  f.script.answer("unlock");
  f.lock(record(1), f.other);
  f.locks.ended({7}, &f.handle);
  CHECK(f.held.all().size() == 1);
}

TEST_CASE("who lost a lock with the session gets no other before he has let go of it", "[client]") {
  Fixture f;
  f.lock(record(1, {0, 9}), f.handle);
  f.lock(record(2, {10, 19}), f.handle);
  CHECK(f.held.lose() == std::set<InodeId>{{7}});
  CHECK(f.held.all().empty());
  f.lock(record(1, {50, 50}), f.handle);
  CHECK(f.error == EIO);
  f.lock(record(3, {50, 50}), f.handle);
  CHECK(f.error == 0);
  Status unlocked = Errno(EIO);
  f.locks.unlock(record(1, {0, 9}), [&](Status status) { unlocked = status; });
  CHECK(unlocked.ok());
  f.lock(record(1, {0, 9}), f.handle);
  CHECK(f.error == 0);
  bool closed = false;
  f.locks.closed({7}, 2, [&] { closed = true; });
  CHECK(closed);
  CHECK(f.mds.unlocked.empty());
}
