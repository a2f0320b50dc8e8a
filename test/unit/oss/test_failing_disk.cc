// Objects on a disk that fails or is full.
#include <catch2/catch_test_macros.hpp>

#include "store_fixture.h"

using namespace trainfs;
using namespace trainfs::oss;

namespace {

// Makes operations of one kind fail, as a broken or full disk does.
class BrokenDisk final : public OperationObserver {
 public:
  BrokenDisk(StoreFixture& fixture, uint8_t opcode, int error)
      : fixture_(fixture), opcode_(opcode), error_(error) {
    fixture_.reactor().observe(this);
  }
  ~BrokenDisk() { fixture_.reactor().observe(nullptr); }
  void submitted(const io_uring_sqe&) override {}
  void completed(const io_uring_sqe& operation, int& result) override {
    bool file = (operation.fsync_flags & IORING_FSYNC_DATASYNC) != 0;
    if (operation.opcode != opcode_ || (opcode_ == IORING_OP_FSYNC && !file)) return;
    result = -error_;
    ++failures;
  }
  int failures = 0;

 private:
  StoreFixture& fixture_;
  const uint8_t opcode_;
  const int error_;
};

}  // namespace

TEST_CASE("after a flush that failed no sync is answered well until the next start") {
  StoreFixture fixture({.idle = std::chrono::milliseconds(0)});
  std::mt19937_64 random(20);
  auto id = objectNumber(1), other = objectNumber(2);
  Bytes data = randomBytes(random, 1000);
  REQUIRE(fixture.write(id, 0, data) == 0);
  {
    BrokenDisk disk(fixture, IORING_OP_FSYNC, EIO);
    // Met by the background cleaner, which answers nobody.
    fixture.store().tick();
    fixture.reactor().runUntil([&] { return disk.failures == 1; });
    fixture.reactor().runUntil([&] { return fixture.store().failedObjects() == 1; });
  }
  REQUIRE(fixture.sync(id) == EIO);
  REQUIRE(fixture.sync(id) == EIO);
  REQUIRE(fixture.write(id, 0, data) == EIO);
  REQUIRE(fixture.read(id, 0, 1000).data == data);
  REQUIRE_FALSE(fixture.wait(fixture.store().cleanAll()));
  // Others are served on, and their commit tells the next server.
  REQUIRE(fixture.write(other, 0, data) == 0);
  REQUIRE(fixture.sync(other) == 0);
  uint64_t verifier = fixture.index().verifier();
  fixture.reopen();
  REQUIRE(fixture.index().verifier() != verifier);
  REQUIRE(fixture.read(id, 0, 1000).sumsRight);
  REQUIRE(fixture.sync(id) == 0);
  REQUIRE_FALSE(recordOf(fixture, id).dirty);
}

TEST_CASE(
    "a disk that fails with its index, and is mounted again, does not bring its verifier back") {
  StoreFixture fixture;
  auto id = objectNumber(1);
  REQUIRE(fixture.write(id, 0, Bytes(100)) == 0);
  uint64_t verifier = fixture.index().verifier();
  auto index = fixture.path() + "/index/data.mdb", before = fixture.path() + "/before";
  std::filesystem::copy_file(index, before);
  {
    BrokenDisk disk(fixture, IORING_OP_FSYNC, EIO);
    REQUIRE(fixture.sync(id) == EIO);
  }
  fixture.abandon();
  std::filesystem::rename(before, index);
  fixture.open();
  REQUIRE(fixture.index().verifier() != verifier);
}

TEST_CASE("a failed object can be destroyed and made anew") {
  StoreFixture fixture;
  auto id = objectNumber(1);
  REQUIRE(fixture.write(id, 0, Bytes(100)) == 0);
  {
    BrokenDisk disk(fixture, IORING_OP_FSYNC, ENOSPC);
    REQUIRE(fixture.sync(id) == ENOSPC);
  }
  REQUIRE(fixture.store().failedObjects() == 1);
  REQUIRE(fixture.wait(fixture.store().destroy(id)).ok());
  REQUIRE(fixture.store().failedObjects() == 0);
  REQUIRE(fixture.write(id, 0, Bytes(100)) == 0);
  REQUIRE(fixture.sync(id) == 0);
}

TEST_CASE("failed objects, which keep their descriptors, do not hide others that could be closed") {
  StoreFixture fixture({.descriptors = 100});
  constexpr uint64_t kFailed = 70, kOthers = 200;  // more than one eviction looks at
  for (uint64_t i = 1; i <= kFailed; ++i)
    REQUIRE(fixture.write(objectNumber(i), 0, Bytes(10)) == 0);
  {
    BrokenDisk disk(fixture, IORING_OP_FSYNC, EIO);
    for (uint64_t i = 1; i <= kFailed; ++i) REQUIRE(fixture.sync(objectNumber(i)) == EIO);
  }
  for (uint64_t i = kFailed + 1; i <= kFailed + kOthers; ++i) {
    REQUIRE(fixture.write(objectNumber(i), 0, Bytes(10)) == 0);
    REQUIRE(fixture.sync(objectNumber(i)) == 0);
  }
  for (uint64_t i = kFailed + 1; i <= kFailed + kOthers; ++i)
    REQUIRE(fixture.read(objectNumber(i), 0, 10).data == Bytes(10));
  REQUIRE(fixture.store().openDescriptors() <= 100 + 1);
}

TEST_CASE("with more failed objects than can be told apart the OST changes nothing any more") {
  StoreFixture fixture({.failedObjects = 2});
  for (uint64_t i = 1; i <= 4; ++i) REQUIRE(fixture.write(objectNumber(i), 0, Bytes(10)) == 0);
  {
    BrokenDisk disk(fixture, IORING_OP_FSYNC, EIO);
    for (uint64_t i = 1; i <= 3; ++i) REQUIRE(fixture.sync(objectNumber(i)) == EIO);
  }
  REQUIRE(fixture.sync(objectNumber(4)) == EIO);
  REQUIRE(fixture.write(objectNumber(5), 0, Bytes(10)) == EIO);
  REQUIRE(fixture.read(objectNumber(4), 0, 10).data == Bytes(10));
}

TEST_CASE("writes do not wait for what cannot be made clean") {
  StoreFixture fixture({.descriptors = 16, .dirtyObjects = 4, .failedObjects = 0});
  // Sums cannot be made, so nothing becomes clean; what was written is safe nevertheless.
  for (uint64_t i = 1; i <= 4; ++i) REQUIRE(fixture.write(objectNumber(i), 1, Bytes(10)) == 0);
  BrokenDisk disk(fixture, IORING_OP_READ, EIO);
  REQUIRE(fixture.write(objectNumber(5), 0, Bytes(10)) == EIO);
  int before = disk.failures;
  REQUIRE(fixture.write(objectNumber(5), 0, Bytes(10)) == EIO);
  REQUIRE(disk.failures == before);  // put off, not tried in a circle
  REQUIRE_FALSE(fixture.wait(fixture.store().cleanAll()));
}
