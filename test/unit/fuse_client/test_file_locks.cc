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
  FileLocks locks{mds, held, statistics};
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
  CHECK(f.held.count() == 4);
  f.mds.lockError = EAGAIN;
  f.lock(record(3), f.handle);
  CHECK(f.error == EAGAIN);
  CHECK(f.held.count() == 4);
  f.locks.unlock(record(1, {0, 5}), [](Status) {});
  CHECK(f.held.count() == 4);  // until the MDS has said so
  f.script.answer("unlock");
  CHECK(f.held.all() == std::vector<FileLock>{record(1, {6, 9}), whole(2)});
}

TEST_CASE("a lock whose caller is gone is let go of", "[client]") {
  Fixture f;
  f.lock(record(1, {3, 4}), f.handle, /*known=*/false);
  CHECK(f.mds.unlocked == std::vector<FileLock>{record(1, {3, 4})});
  f.script.answer("unlock");
  CHECK(f.held.count() == 0);
}

TEST_CASE("a lock whose fate is unknown is let go of", "[client]") {
  Fixture f;
  f.mds.lockError = EIO;
  f.lock(record(1), f.handle);
  CHECK(f.mds.unlocked.size() == 1);
}

TEST_CASE("who cannot change the mode of a flock has none", "[client]") {
  Fixture f;
  f.lock(whole(1, LockMode::kShared), f.handle);
  f.mds.lockError = EAGAIN;
  f.lock(whole(1), f.handle);
  f.script.answer("unlock");
  CHECK(f.held.count() == 0);
  f.lock(whole(1), f.handle);  // he has none: nothing to let go of
  CHECK(f.mds.unlocked.size() == 1);
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
  CHECK(f.held.count() == 2);
  f.locks.ended({7}, &f.handle);
  CHECK(f.held.count() == 0);
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
  CHECK(f.held.count() == 1);
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
