#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>

#include "store_fixture.h"

using namespace trainfs;
using namespace trainfs::oss;

namespace {

void flipByte(const std::string& path, off_t offset) {
  int fd = open(path.c_str(), O_RDWR);
  REQUIRE(fd >= 0);
  char byte;
  REQUIRE(pread(fd, &byte, 1, offset) == 1);
  byte ^= 1;
  REQUIRE(pwrite(fd, &byte, 1, offset) == 1);
  close(fd);
}

ObjectRecord recordOf(StoreFixture& fixture, ObjectId id) {
  ObjectIndex::Reader reader(fixture.index());
  auto found = reader.find(id);
  REQUIRE(found);
  return found->record;
}

}  // namespace

TEST_CASE("what was written is read back with the sums of its pieces") {
  StoreFixture fixture;
  std::mt19937_64 random(1);
  Bytes data = randomBytes(random, 300'000);
  auto id = objectNumber(5);
  REQUIRE(fixture.write(id, 1000, data) == 0);
  auto back = fixture.read(id, 1000, data.size());
  REQUIRE(back.error == 0);
  REQUIRE(back.data == data);
  REQUIRE(back.sumsRight);
  REQUIRE(fixture.read(id, 0, 1000).data == Bytes(1000));
  REQUIRE(fixture.read(id, 301'000, 10).data.empty());
  REQUIRE(fixture.read(id, 300'990, 100).data.size() == 10);
}

TEST_CASE("reading does not make an object") {
  StoreFixture fixture;
  auto back = fixture.read(objectNumber(1), 0, 4096);
  REQUIRE(back.missing);
  REQUIRE(fixture.onlyFile().empty());
}

TEST_CASE("sums of whole clean blocks are those that the writer gave") {
  StoreFixture fixture;
  std::mt19937_64 random(2);
  Bytes data = randomBytes(random, 3 * kBlockBytes + 17);
  auto id = objectNumber(5);
  REQUIRE(fixture.write(id, 0, data) == 0);
  REQUIRE(fixture.sync(id) == 0);
  REQUIRE_FALSE(recordOf(fixture, id).dirty);
  REQUIRE(recordOf(fixture, id).sizeBytes == data.size());
  ObjectIndex::Reader reader(fixture.index());
  REQUIRE(reader.find(id)->firstSums == sumsOf(0, data));

  // A damaged byte goes out with the old sum, for the client to find.
  fixture.reopen();
  flipByte(fixture.onlyFile(), kBlockBytes + 5);
  auto back = fixture.read(id, 0, data.size());
  REQUIRE(back.error == 0);
  REQUIRE_FALSE(back.sumsRight);
  // Where only a part of the block is wanted, the server has to look.
  REQUIRE(fixture.read(id, kBlockBytes + 100, 10).error == EIO);
  REQUIRE(fixture.read(id, 100, 10).sumsRight);
}

TEST_CASE("a file that lost its end or itself is an error, not zeros") {
  StoreFixture fixture;
  std::mt19937_64 random(3);
  auto id = objectNumber(7);
  REQUIRE(fixture.write(id, 0, randomBytes(random, 200'000)) == 0);
  REQUIRE(fixture.sync(id) == 0);
  fixture.reopen();
  std::filesystem::resize_file(fixture.onlyFile(), 100'000);
  REQUIRE(fixture.read(id, 0, 1000).sumsRight);
  REQUIRE(fixture.read(id, 150'000, 1000).error == EIO);
  fixture.reopen();
  std::filesystem::remove(fixture.onlyFile());
  REQUIRE(fixture.read(id, 0, 1000).error == EIO);
  REQUIRE(fixture.write(id, 0, randomBytes(random, 10)) == EIO);
}

TEST_CASE("a change to a clean object marks it before it happens") {
  StoreFixture fixture;
  std::mt19937_64 random(4);
  auto id = objectNumber(8);
  Bytes data = randomBytes(random, 2 * kBlockBytes);
  REQUIRE(fixture.write(id, 0, data) == 0);
  REQUIRE(fixture.sync(id) == 0);
  auto clean = recordOf(fixture, id);
  REQUIRE(fixture.write(id, 0, randomBytes(random, 100)) == 0);
  REQUIRE(recordOf(fixture, id).dirty);
  REQUIRE(fixture.sync(id) == 0);
  REQUIRE_FALSE(recordOf(fixture, id).dirty);
  REQUIRE(recordOf(fixture, id).version == clean.version + 1);
}

TEST_CASE("after a crash a dirty object is what its file says") {
  StoreFixture fixture;
  std::mt19937_64 random(5);
  auto id = objectNumber(9);
  Bytes data = randomBytes(random, 4 * kBlockBytes);
  REQUIRE(fixture.write(id, 0, data) == 0);
  REQUIRE(fixture.sync(id) == 0);
  REQUIRE(fixture.write(id, kBlockBytes, Bytes(kBlockBytes)) == 0);
  fixture.reopen();
  // A torn write of an unsynced range is not corruption.
  flipByte(fixture.onlyFile(), kBlockBytes + 1);
  auto back = fixture.read(id, 0, data.size());
  REQUIRE(back.error == 0);
  REQUIRE(back.sumsRight);
  REQUIRE(fixture.read(id, kBlockBytes + 1, 1).sumsRight);
  REQUIRE(fixture.sync(id) == 0);
  REQUIRE_FALSE(recordOf(fixture, id).dirty);
  fixture.reopen();
  REQUIRE(fixture.read(id, 0, data.size()).data == back.data);
  REQUIRE(fixture.read(id, 0, data.size()).sumsRight);
}

TEST_CASE("objects that nobody changes any more are cleaned in the background") {
  StoreFixture fixture({.idle = std::chrono::milliseconds(0)});
  std::mt19937_64 random(6);
  for (uint64_t i = 1; i <= 100; ++i)
    REQUIRE(fixture.write(objectNumber(i), 0, randomBytes(random, 1000)) == 0);
  fixture.store().tick();
  fixture.reactor().runUntil([&] { return fixture.store().dirtyObjects() == 0; });
  for (uint64_t i = 1; i <= 100; ++i) REQUIRE_FALSE(recordOf(fixture, objectNumber(i)).dirty);
}

TEST_CASE("more objects than may be open, known or dirty at once") {
  StoreFixture fixture({.descriptors = 8, .objects = 16, .dirtyObjects = 10});
  std::mt19937_64 random(7);
  std::vector<Bytes> contents;
  for (uint64_t i = 1; i <= 60; ++i) {
    contents.push_back(randomBytes(random, 100 + i));
    REQUIRE(fixture.write(objectNumber(i), 0, contents.back()) == 0);
    REQUIRE(fixture.store().openDescriptors() <= 32);  // while the cleaner holds some
    REQUIRE(fixture.store().dirtyObjects() <= 10);
  }
  REQUIRE(fixture.wait(fixture.store().cleanAll()));
  for (uint64_t i = 1; i <= 60; ++i) {
    auto back = fixture.read(objectNumber(i), 0, 1000);
    REQUIRE(back.data == contents[i - 1]);
    REQUIRE(back.sumsRight);
  }
  REQUIRE(fixture.store().openDescriptors() <= 8);
}

TEST_CASE("a destroyed object is gone, also from the index") {
  StoreFixture fixture;
  std::mt19937_64 random(8);
  auto id = objectNumber(10);
  REQUIRE(fixture.write(id, 0, randomBytes(random, 40 * kMiB / 10)) == 0);
  REQUIRE(fixture.sync(id) == 0);
  REQUIRE(fixture.wait(fixture.store().destroy(id)).ok());
  REQUIRE(fixture.read(id, 0, 10).missing);
  REQUIRE(fixture.onlyFile().empty());
  ObjectIndex::Reader reader(fixture.index());
  REQUIRE(reader.find(id).errnoOrZero() == ENOENT);
  REQUIRE(fixture.wait(fixture.store().destroy(id)).ok());
}

TEST_CASE("a sparse object costs nothing for its holes") {
  StoreFixture fixture;
  std::mt19937_64 random(9);
  auto id = objectNumber(11);
  Bytes data = randomBytes(random, 1000);
  uint64_t far = 8 * 1024 * kGiB;
  REQUIRE(fixture.write(id, far, data) == 0);
  REQUIRE(fixture.sync(id) == 0);
  fixture.reopen();
  REQUIRE(fixture.read(id, far / 2, kMiB).data == Bytes(kMiB));
  REQUIRE(fixture.read(id, far / 2, kMiB).sumsRight);
  REQUIRE(fixture.read(id, far, 5000).data == data);
  REQUIRE(*fixture.wait(fixture.store().truncate(id, far / 2 + 77)));
  fixture.reopen();  // in doubt now
  REQUIRE(fixture.sync(id) == 0);
  auto back = fixture.read(id, far / 2, kMiB);
  REQUIRE(back.data.size() == 77);
  REQUIRE(back.sumsRight);
}

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

TEST_CASE("the verifier outlives the process, not the machine's run") {
  StoreFixture fixture;
  uint64_t verifier = fixture.index().verifier();
  REQUIRE(verifier != 0);
  fixture.reopen();
  REQUIRE(fixture.index().verifier() == verifier);
  fixture.reboot();
  REQUIRE(fixture.index().verifier() != verifier);
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

TEST_CASE("a change whose turn comes after the lease's end is not made") {
  StoreFixture fixture;
  auto id = objectNumber(1);
  REQUIRE(fixture.write(id, 0, Bytes(10)) == 0);
  fixture.lease().extendTo({});
  REQUIRE(fixture.write(id, 0, Bytes(20)) == EAGAIN);
  REQUIRE(fixture.wait(fixture.store().truncate(id, 5)).errnoOrZero() == EAGAIN);
  REQUIRE(fixture.wait(fixture.store().punch(id, {0, 5})).errnoOrZero() == EAGAIN);
  REQUIRE(fixture.read(id, 0, 100).data == Bytes(10));
}

TEST_CASE("a reader that doubts its sums has the server look") {
  StoreFixture fixture;
  std::mt19937_64 random(21);
  auto id = objectNumber(1);
  REQUIRE(fixture.write(id, 0, randomBytes(random, 3 * kBlockBytes)) == 0);
  REQUIRE(fixture.sync(id) == 0);
  flipByte(fixture.onlyFile(), kBlockBytes + 5);
  REQUIRE(fixture.read(id, 0, 3 * kBlockBytes, true).error == EIO);
  REQUIRE(fixture.read(id, 0, kBlockBytes, true).sumsRight);
  REQUIRE(fixture.read(id, 2 * kBlockBytes, kBlockBytes, true).sumsRight);
}

namespace {

// What an object should hold.
struct Model {
  Bytes data;
  bool exists = false;
};

// One random operation on the store and on the model.
class RandomOperations {
 public:
  RandomOperations(StoreFixture& fixture, uint64_t seed) : fixture_(fixture), random_(seed) {}

  void step() {
    auto number = 1 + random_() % kObjects;
    auto id = objectNumber(number);
    Model& model = models_[number];
    switch (random_() % 12) {
      case 0:
      case 1:
      case 2:
      case 3:
        return write(id, model);
      case 4:
      case 5:
      case 6:
        return read(id, model);
      case 7:
        return truncate(id, model);
      case 8:
        return punch(id, model);
      case 9:
        REQUIRE(fixture_.sync(id) == 0);
        return;
      case 10:
        if (random_() % 4 == 0) fixture_.reopen();
        return;
      case 11:
        if (random_() % 8 != 0) return;
        REQUIRE(fixture_.wait(fixture_.store().destroy(id)).ok());
        model = {};
        return;
    }
  }

  void checkAll() {
    for (uint64_t i = 1; i <= kObjects; ++i)
      check(objectNumber(i), models_[i], 0, kSpanBytes + kMiB);
  }

 private:
  static constexpr uint64_t kObjects = 4;
  static constexpr uint64_t kSpanBytes = 40 * kMiB;  // more than one chunk

  uint64_t position() {
    uint64_t at = random_() % (random_() % 8 == 0 ? kSpanBytes : 8 * kBlockBytes);
    return random_() % 3 == 0 ? at / kBlockBytes * kBlockBytes : at;
  }
  uint64_t length() { return 1 + random_() % (random_() % 2 == 0 ? 3 * kBlockBytes : 2000); }

  void write(ObjectId id, Model& model) {
    uint64_t at = position();
    Bytes data = randomBytes(random_, length());
    REQUIRE(fixture_.write(id, at, data) == 0);
    if (model.data.size() < at + data.size()) model.data.resize(at + data.size());
    std::copy(data.begin(), data.end(), model.data.begin() + at);
    model.exists = true;
  }

  void read(ObjectId id, Model& model) { check(id, model, position(), length()); }

  void check(ObjectId id, Model& model, uint64_t at, uint64_t length) {
    auto back = fixture_.read(id, at, length);
    REQUIRE(back.error == 0);
    REQUIRE(back.missing == !model.exists);
    uint64_t end = std::min<uint64_t>(at + length, model.data.size());
    Bytes expected;
    if (at < end) expected.assign(model.data.begin() + at, model.data.begin() + end);
    REQUIRE((back.data == expected));
    if (model.exists) REQUIRE(back.sumsRight);
  }

  void truncate(ObjectId id, Model& model) {
    uint64_t size = random_() % 6 == 0 ? 0 : position();
    REQUIRE(*fixture_.wait(fixture_.store().truncate(id, size)) == model.exists);
    if (model.exists) model.data.resize(size);
  }

  void punch(ObjectId id, Model& model) {
    uint64_t at = position(), bytes = random_() % 5 == 0 ? 35 * kMiB : length();
    REQUIRE(*fixture_.wait(fixture_.store().punch(id, {at, bytes})) == model.exists);
    for (uint64_t i = at; i < std::min<uint64_t>(at + bytes, model.data.size()); ++i)
      model.data[i] = std::byte{0};
  }

  StoreFixture& fixture_;
  std::mt19937_64 random_;
  std::map<uint64_t, Model> models_;
};

}  // namespace

TEST_CASE("random operations, restarts among them, agree with a model") {
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  StoreFixture fixture;
  RandomOperations operations(fixture, seed);
  for (int i = 0; i < 1500; ++i) operations.step();
  operations.checkAll();
  REQUIRE(fixture.wait(fixture.store().cleanAll()));
  fixture.reopen();
  operations.checkAll();
}

namespace {

// Writers and readers of one object, each in a stretch of its own that shares blocks with its
// neighbours', while others sync and the object grows.
class Crowd {
 public:
  Crowd(StoreFixture& fixture, uint64_t seed) : fixture_(fixture), seed_(seed) {}

  void run() {
    left_ = kMembers + 1;
    for (size_t i = 0; i < kMembers; ++i) spawn(member(i));
    spawn(syncer());
    fixture_.reactor().runUntil([&] { return left_ == 0; });
  }
  int wrong() const { return wrong_; }
  void check() {
    uint64_t sizeBytes = 0;
    for (size_t i = 0; i < kMembers; ++i) sizeBytes = std::max(sizeBytes, writtenEnd(i));
    Bytes whole(kMembers * kStretchBytes);
    for (size_t i = 0; i < kMembers; ++i)
      std::copy(stretches_[i].begin(), stretches_[i].end(), whole.begin() + i * kStretchBytes);
    whole.resize(sizeBytes);
    auto back = fixture_.read(id_, 0, kMembers * kStretchBytes);
    REQUIRE(back.error == 0);
    REQUIRE((back.data == whole));
    REQUIRE(back.sumsRight);
  }

 private:
  static constexpr size_t kMembers = 12, kSteps = 60;
  static constexpr uint64_t kStretchBytes = 100'000;

  uint64_t writtenEnd(size_t i) { return ends_[i] == 0 ? 0 : i * kStretchBytes + ends_[i]; }

  Task<> member(size_t number) {
    std::mt19937_64 random(seed_ + number);
    Bytes& mine = stretches_[number];
    mine.resize(kStretchBytes);
    Bytes room(ObjectStore::roomFor({kBlockBytes - 1, kStretchBytes}));
    for (size_t step = 0; step < kSteps; ++step) {
      uint64_t at = random() % kStretchBytes, bytes = 1 + random() % (kStretchBytes - at);
      uint64_t offset = number * kStretchBytes + at;
      if (random() % 2 == 0) {
        Bytes data = randomBytes(random, bytes);
        auto sums = sumsOf(offset, data);
        auto status = co_await fixture_.store().write(id_, offset, data, sums.data());
        if (!status) std::abort();
        std::copy(data.begin(), data.end(), mine.begin() + at);
        ends_[number] = std::max(ends_[number], at + bytes);
      } else {
        auto slice = co_await fixture_.store().read(id_, {offset, bytes}, room);
        if (!slice) std::abort();
        Bytes found(slice->data.begin(), slice->data.end());
        if (!std::equal(found.begin(), found.end(), mine.begin() + at)) ++wrong_;
        if (slice->sums != sumsOf(offset, found)) ++wrong_;
      }
    }
    --left_;
  }

  Task<> syncer() {
    while (left_ > 1) {
      auto synced = co_await fixture_.store().sync(id_);
      if (!synced) std::abort();
      co_await Yield{fixture_.reactor()};
    }
    --left_;
  }

  struct Yield {
    Reactor& reactor;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> coroutine) {
      reactor.post([coroutine] { coroutine.resume(); });
    }
    void await_resume() const {}
  };

  StoreFixture& fixture_;
  const uint64_t seed_;
  int wrong_ = 0;
  const ObjectId id_ = objectNumber(3);
  size_t left_ = 0;
  std::map<size_t, Bytes> stretches_;
  std::map<size_t, uint64_t> ends_;
};

}  // namespace

TEST_CASE("a crowd on one object sees its own writes, with right sums, whatever others do") {
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  StoreFixture fixture;
  Crowd crowd(fixture, seed);
  crowd.run();
  REQUIRE(crowd.wrong() == 0);
  crowd.check();
  REQUIRE(fixture.wait(fixture.store().cleanAll()));
  fixture.reopen();
  crowd.check();
}

TEST_CASE("the sums of a very large object do not stay in memory") {
  StoreFixture fixture;
  std::mt19937_64 random(10);
  auto id = objectNumber(12);
  constexpr uint64_t kFarApart = kChunkBlocks * kBlockBytes, kCount = 300;
  Bytes data = randomBytes(random, 1000);
  for (uint64_t i = 0; i < kCount; ++i) REQUIRE(fixture.write(id, i * kFarApart, data) == 0);
  REQUIRE(fixture.sync(id) == 0);
  for (uint64_t i = 0; i < kCount; i += 7) {
    auto back = fixture.read(id, i * kFarApart, 2 * kBlockBytes);
    REQUIRE(back.sumsRight);
    REQUIRE(std::equal(data.begin(), data.end(), back.data.begin()));
  }
  REQUIRE(fixture.write(id, 5 * kFarApart + 10, data) == 0);
  REQUIRE(fixture.sync(id) == 0);
  fixture.reopen();
  REQUIRE(fixture.read(id, 5 * kFarApart, 1010).sumsRight);
  REQUIRE(fixture.read(id, 299 * kFarApart, 1000).sumsRight);
}
