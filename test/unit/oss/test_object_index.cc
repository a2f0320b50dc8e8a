// What a batch of changes comes to: the index as a whole, without a store above it.
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <future>
#include <map>

#include "lib/seed.h"
#include "lib/temp_dir.h"
#include "oss/object_index.h"

using namespace trainfs;
using namespace trainfs::oss;

namespace {

constexpr uint64_t kObjects = 12, kChunks = 5;

ObjectId object(uint64_t number) {
  return {InodeId{2 + number / 4}, 1, 0, static_cast<uint32_t>(number % 4)};
}

IndexChange randomChange(test::Random& random) {
  using Kind = IndexChange::Kind;
  IndexChange change{.object = object(random.between(0, kObjects - 1))};
  auto kind = random.between(0, 9);
  change.kind = kind == 0 ? Kind::kRemove : kind < 4 ? Kind::kMarkDirty : Kind::kClean;
  change.record = {.version = random.between(1, 1000), .sizeBytes = random.between(0, kGiB)};
  if (change.kind == Kind::kRemove) {
    change.dropEnd = UINT64_MAX;
    return change;
  }
  if (random.chance(40)) {
    change.dropFirst = random.between(0, kChunks - 1);
    change.dropEnd = random.between(change.dropFirst, kChunks);
  }
  for (uint64_t chunk = 0; chunk < kChunks; ++chunk)
    if (random.chance(40))
      change.chunks[chunk] = std::vector<uint64_t>(random.between(0, 3), random.between(1, 1000));
  return change;
}

int changeNow(ObjectIndex& index, IndexChange change) {
  std::promise<int> done;
  index.change(std::move(change), [&](int error) { done.set_value(error); });
  return done.get_future().get();
}

// What is given to it while it lives waits, and is one batch afterwards.
class HeldWriter {
 public:
  explicit HeldWriter(ObjectIndex& index) {
    std::promise<void> held;
    index.change({.kind = IndexChange::Kind::kMarkDirty},
                 [&held, release = release_.get_future().share()](int) {
                   held.set_value();
                   release.wait();
                 });
    held.get_future().wait();
  }
  ~HeldWriter() { release_.set_value(); }

 private:
  std::promise<void> release_;
};

struct Content {
  bool dirty;
  uint64_t version, sizeBytes;
  std::vector<uint64_t> firstSums;
  bool operator==(const Content&) const = default;
};

struct Contents {
  std::map<ObjectId, Content> records;
  std::map<std::pair<ObjectId, uint64_t>, std::vector<uint64_t>> sums;
  bool operator==(const Contents&) const = default;
};

Contents contentsOf(ObjectIndex& index) {
  Contents contents;
  ObjectIndex::Reader reader(index);
  for (uint64_t number = 0; number < kObjects; ++number) {
    auto id = object(number);
    if (auto found = reader.find(id))
      contents.records[id] = {found->record.dirty, found->record.version, found->record.sizeBytes,
                              found->firstSums};
    for (uint64_t chunk = 1; chunk < kChunks; ++chunk) {
      auto sums = reader.sums(id, chunk);
      REQUIRE(sums.ok());
      contents.sums[{id, chunk}] = *sums;
    }
  }
  return contents;
}

}  // namespace

TEST_CASE("a batch comes to the same as its changes one by one") {
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  test::Random random(seed);
  test::TempDir directory;
  ObjectIndex oneByOne(directory / "one", directory / "one.note");
  ObjectIndex batches(directory / "batches", directory / "batches.note");
  for (int round = 0; round < 30; ++round) {
    std::vector<IndexChange> changes;
    for (uint64_t left = random.between(1, 60); left > 0; --left)
      changes.push_back(randomChange(random));
    std::vector<int> errors(changes.size(), -1);
    {
      HeldWriter held(batches);
      for (size_t i = 0; i < changes.size(); ++i)
        batches.change(changes[i], [&errors, i](int error) { errors[i] = error; });
    }
    for (auto& change : changes) REQUIRE(changeNow(oneByOne, change) == 0);
    // Of no object: it comes after all that waits.
    REQUIRE(changeNow(batches, {.kind = IndexChange::Kind::kOrderlyStop}) == 0);
    CHECK(errors == std::vector<int>(changes.size(), 0));
    REQUIRE(contentsOf(batches) == contentsOf(oneByOne));
  }
}

TEST_CASE("a batch is applied object by object, and what is of no object divides it") {
  test::TempDir directory;
  std::vector<std::string> answered;
  {
    ObjectIndex index(directory / "index", directory / "note");
    auto give = [&](uint64_t number, const std::string& name) {
      index.change({.kind = IndexChange::Kind::kClean, .object = object(number)},
                   [&answered, name](int) { answered.push_back(name); });
    };
    HeldWriter held(index);
    give(7, "7, first");
    give(9, "9");
    give(7, "7, second");
    give(1, "1");
    index.change({.kind = IndexChange::Kind::kOrderlyStop},
                 [&](int) { answered.push_back("stop"); });
    give(5, "5");
    give(0, "0");
  }
  CHECK(answered == std::vector<std::string>{"1", "7, first", "7, second", "9", "stop", "0", "5"});
}
