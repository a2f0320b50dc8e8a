// What becomes of a block that its disk damaged, when it is changed.
#include <catch2/catch_test_macros.hpp>

#include "store_fixture.h"

using namespace trainfs;
using namespace trainfs::oss;

namespace {

constexpr size_t kSizeBytes = 3 * kBlockBytes + 1000;

// An object of four blocks, the last one short, of which one has a wrong byte on the disk.
class DamagedObject {
 public:
  explicit DamagedObject(uint64_t damagedByte) {
    std::mt19937_64 random(31);
    REQUIRE(fixture.write(id, 0, randomBytes(random, kSizeBytes)) == 0);
    REQUIRE(fixture.sync(id) == 0);
    fixture.reopen();
    flipByte(fixture.onlyFile(), static_cast<off_t>(damagedByte));
    damaged_ = damagedByte;
  }

  // The damage is still known as such, now and after whatever makes objects clean.
  void requireKnown() {
    REQUIRE_FALSE(recordOf(fixture, id).dirty);
    for (bool synced : {false, true}) {
      REQUIRE(fixture.read(id, damaged_, 1).error == EIO);
      if (!synced) REQUIRE(fixture.sync(id) == 0);
      if (!synced) fixture.reopen();
    }
  }

  StoreFixture fixture;
  const ObjectId id = objectNumber(1);

 private:
  uint64_t damaged_;
};

// Counts what is read from objects.
class ReadCounter final : public OperationObserver {
 public:
  explicit ReadCounter(Reactor& reactor) : reactor_(reactor) { reactor.observe(this); }
  ~ReadCounter() { reactor_.observe(nullptr); }
  void submitted(const io_uring_sqe& operation) override {
    if (operation.opcode == IORING_OP_READ) ++reads;
  }
  void completed(const io_uring_sqe&, int&) override {}
  int reads = 0;

 private:
  Reactor& reactor_;
};

}  // namespace

TEST_CASE("damage at rest does not become right by a change of its block") {
  constexpr uint64_t kMiddle = kBlockBytes + 5, kTail = 3 * kBlockBytes + 5;
  SECTION("a write of a part") {
    DamagedObject object(kMiddle);
    REQUIRE(object.fixture.write(object.id, kBlockBytes + 100, Bytes(10)) == EIO);
    object.requireKnown();
  }
  SECTION("a write that ends in it") {
    DamagedObject object(kMiddle);
    REQUIRE(object.fixture.write(object.id, 0, Bytes(kBlockBytes + 1)) == EIO);
    object.requireKnown();
  }
  SECTION("a write that begins in it") {
    DamagedObject object(kMiddle);
    REQUIRE(object.fixture.write(object.id, kBlockBytes + 10, Bytes(kBlockBytes)) == EIO);
    object.requireKnown();
  }
  SECTION("an append") {
    DamagedObject object(kTail);
    REQUIRE(object.fixture.write(object.id, kSizeBytes, Bytes(10)) == EIO);
    object.requireKnown();
  }
  SECTION("a write behind the end, which makes the last block longer") {
    DamagedObject object(kTail);
    REQUIRE(object.fixture.write(object.id, 8 * kBlockBytes, Bytes(kBlockBytes)) == EIO);
    object.requireKnown();
  }
  SECTION("a truncation inside it") {
    DamagedObject object(kMiddle);
    REQUIRE(object.fixture.truncate(object.id, kBlockBytes + 100).errnoOrZero() == EIO);
    object.requireKnown();
  }
  SECTION("a truncation that makes the object longer") {
    DamagedObject object(kTail);
    REQUIRE(object.fixture.truncate(object.id, 8 * kBlockBytes).errnoOrZero() == EIO);
    object.requireKnown();
  }
  SECTION("a hole that begins in it") {
    DamagedObject object(kMiddle);
    REQUIRE(object.fixture.punch(object.id, {kBlockBytes + 10, kBlockBytes}).errnoOrZero() == EIO);
    object.requireKnown();
  }
  SECTION("a hole that ends in it") {
    DamagedObject object(kMiddle);
    REQUIRE(object.fixture.punch(object.id, {0, kBlockBytes + 1}).errnoOrZero() == EIO);
    object.requireKnown();
  }
}

TEST_CASE("a change that replaces all of a damaged block mends it") {
  DamagedObject object(kBlockBytes + 5);
  auto& fixture = object.fixture;
  REQUIRE(fixture.write(object.id, 0, Bytes(100)) == 0);  // another block
  SECTION("a write") {
    REQUIRE(fixture.write(object.id, kBlockBytes, Bytes(kBlockBytes)) == 0);
  }
  SECTION("a hole") {
    REQUIRE(fixture.punch(object.id, {kBlockBytes, kBlockBytes}).ok());
  }
  SECTION("a truncation") {
    REQUIRE(fixture.truncate(object.id, kBlockBytes).ok());
    REQUIRE(fixture.truncate(object.id, 3 * kBlockBytes).ok());
  }
  REQUIRE(fixture.sync(object.id) == 0);
  fixture.reopen();
  auto back = fixture.read(object.id, 0, 3 * kBlockBytes, true);
  REQUIRE(back.sumsRight);
  REQUIRE(Bytes(back.data.begin() + kBlockBytes, back.data.begin() + 2 * kBlockBytes) ==
          Bytes(kBlockBytes));
}

TEST_CASE("small changes read a block at most once while their object is not clean") {
  StoreFixture fixture;
  auto id = objectNumber(1);
  {
    // Nothing is at rest yet.
    ReadCounter counter(fixture.reactor());
    for (uint64_t i = 0; i < 20; ++i) REQUIRE(fixture.write(id, i * 100'000, Bytes(100'000)) == 0);
    REQUIRE(counter.reads == 0);
  }
  REQUIRE(fixture.sync(id) == 0);
  ReadCounter counter(fixture.reactor());
  for (uint64_t i = 0; i < 500; ++i)
    REQUIRE(fixture.write(id, 2'000'000 + i * 1000, Bytes(1000)) == 0);
  REQUIRE(counter.reads == 1);
  for (uint64_t i = 0; i < 60; ++i) REQUIRE(fixture.write(id, i * 1000, Bytes(500)) == 0);
  REQUIRE(counter.reads == 2);
  REQUIRE(fixture.sync(id) == 0);
  int reads = counter.reads;
  REQUIRE(fixture.write(id, 0, Bytes(500)) == 0);
  REQUIRE(counter.reads == reads + 1);
}
