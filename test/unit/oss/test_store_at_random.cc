// Random operations against a model, and many at once on one object.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>

#include "store_fixture.h"

using namespace trainfs;
using namespace trainfs::oss;

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
    REQUIRE(*fixture_.truncate(id, size) == model.exists);
    if (model.exists) model.data.resize(size);
  }

  void punch(ObjectId id, Model& model) {
    uint64_t at = position(), bytes = random_() % 5 == 0 ? 35 * kMiB : length();
    REQUIRE(*fixture_.punch(id, {at, bytes}) == model.exists);
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
        auto status = co_await fixture_.store().write(id_, offset, data, sums.data(),
                                                      fixture_.registration());
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
