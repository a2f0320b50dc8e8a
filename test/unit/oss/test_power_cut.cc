// Power cuts of an OST: a store lives, serves random requests, loses its power at a random change
// of its files, and lives again from what the disk may hold then; recovery is cut like everything
// else. After each cut everything whose sync was answered is there, whatever was not is a mixture
// of what it was since, and nothing is reported as damaged. TRAINFS_POWER_CUTS=1000 is the long
// form (TMPDIR=/dev/shm spares the real disk), TRAINFS_SEED replays.
#include <fcntl.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <map>

#include "lib/disk_recorder.h"
#include "store_fixture.h"

using namespace trainfs;
using namespace trainfs::oss;
using test::DiskRecorder;

namespace {

constexpr uint64_t kCutsShort = 40;
constexpr uint64_t kObjects = 4;
constexpr uint64_t kSpanBytes = 5 * kBlockBytes;
constexpr int kStepsPerLife = 40;

uint64_t cutsWanted() {
  const char* given = std::getenv("TRAINFS_POWER_CUTS");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : kCutsShort;
}

// Tells the recorder what passes libc by.
class RingRecorder final : public OperationObserver {
 public:
  explicit RingRecorder(DiskRecorder& recorder) : recorder_(recorder) {}

  void submitted(const io_uring_sqe& operation) override {
    if (operation.opcode == IORING_OP_FSYNC)
      syncs_[operation.user_data] = recorder_.syncSubmitted(operation.fd);
  }
  void completed(const io_uring_sqe& operation, int& result) override {
    if (result < 0) return;
    auto* path = reinterpret_cast<const char*>(operation.addr);
    DiskRecorder::Place place;
    switch (operation.opcode) {
      case IORING_OP_WRITE:
        return recorder_.wrote(operation.fd, operation.off, {path, static_cast<size_t>(result)});
      case IORING_OP_FALLOCATE:
        return recorder_.allocated(operation.fd, static_cast<int>(operation.len), operation.off,
                                   operation.addr);
      case IORING_OP_FSYNC:
        recorder_.syncCompleted(syncs_[operation.user_data]);
        syncs_.erase(operation.user_data);
        return;
      case IORING_OP_OPENAT:
        if ((operation.open_flags & O_CREAT) && recorder_.findPlace(operation.fd, path, place) &&
            !recorder_.exists(place))
          recorder_.made(place, operation.fd, path);
        return;
      case IORING_OP_UNLINKAT:
        if (recorder_.findPlace(operation.fd, path, place)) recorder_.removed(place);
        return;
      default:
        return;
    }
  }

 private:
  DiskRecorder& recorder_;
  std::map<uint64_t, DiskRecorder::SubmittedSync> syncs_;
};

using Content = std::optional<Bytes>;  // nothing: no such object

// What an object was, from its last promise on.
struct History {
  struct State {
    size_t begun;  // recorded operations before the change
    Content content;
    bool destroying = false;
  };
  struct Promise {
    size_t answered;
    size_t state;  // in `states`
  };
  std::vector<State> states;
  std::vector<Promise> promises;

  void start(Content content) {
    states = {{0, std::move(content)}};
    promises = {{0, 0}};
  }
  const Content& now() const { return states.back().content; }
  void promise(size_t answered) { promises.push_back({answered, states.size() - 1}); }

  // The states of which a cut after n operations may leave parts.
  std::vector<const State*> possible(size_t n) const {
    size_t first = 0;
    for (auto& promise : promises)
      if (promise.answered <= n) first = promise.state;
    std::vector<const State*> found;
    for (size_t i = first; i < states.size(); ++i)
      if (i == first || states[i].begun < n) found.push_back(&states[i]);
    return found;
  }
};

bool mayBe(const std::vector<const History::State*>& states, const Bytes& found) {
  bool sizeKnown = false;
  for (auto* state : states) sizeKnown |= state->content && state->content->size() == found.size();
  if (!sizeKnown) return states.size() > 1 && found.empty();  // made, and nothing else of it
  for (size_t at = 0; at < found.size(); ++at) {
    bool known = false;
    for (auto* state : states) {
      bool covers = state->content && at < state->content->size();
      known |= covers ? (*state->content)[at] == found[at] : found[at] == std::byte{0};
    }
    if (!known) return false;
  }
  return true;
}

class Lives {
 public:
  explicit Lives(uint64_t seed) : random_(seed), diskRandom_(seed + 1) {
    for (uint64_t i = 0; i < kObjects; ++i) histories_[i].start(std::nullopt);
  }

  void liveAndDie() {
    auto next = std::make_unique<test::TempDir>();
    size_t cut;
    {
      DiskRecorder recorder(store_.path());
      RingRecorder ring(recorder);
      recorder_ = &recorder;
      store_.reactor().observe(&ring);
      store_.reboot();
      for (int i = 0; i < kStepsPerLife; ++i) step();
      store_.abandon();
      store_.reactor().observe(nullptr);
      cut = random_() % (recorder.operations() + 1);
      recorder.replay(cut, diskRandom_, next->path());
    }
    store_.reboot(std::move(next));
    for (uint64_t i = 0; i < kObjects; ++i) check(i, cut);
  }

 private:
  ObjectId idOf(uint64_t number) { return objectNumber(1 + number * 1000); }

  void step() {
    uint64_t number = random_() % kObjects;
    auto& history = histories_[number];
    ObjectId id = idOf(number);
    size_t begun = recorder_->operations();
    Content next = history.now();
    switch (random_() % 12) {
      case 0:
        REQUIRE(store_.sync(id) == 0);
        return history.promise(recorder_->operations());
      case 1:
        if (random_() % 3 != 0) return;
        REQUIRE(store_.wait(store_.store().cleanAll()));
        for (auto& [other, past] : histories_) past.promise(recorder_->operations());
        return;
      case 2:
        if (random_() % 3 != 0) return;
        history.states.push_back({begun, std::nullopt, true});
        REQUIRE(store_.wait(store_.store().destroy(id)).ok());
        return history.promise(recorder_->operations());
      case 3: {
        uint64_t size = random_() % kSpanBytes;
        if (next) next->resize(size);
        history.states.push_back({begun, next});
        REQUIRE(store_.truncate(id, size).ok());
        return;
      }
      case 4: {
        FileRange range{random_() % kSpanBytes, 1 + random_() % (2 * kBlockBytes)};
        for (uint64_t at = range.offsetBytes; next && at < range.endBytes() && at < next->size();
             ++at)
          (*next)[at] = std::byte{0};
        history.states.push_back({begun, next});
        REQUIRE(store_.punch(id, range).ok());
        return;
      }
      default: {
        uint64_t at = random_() % (kSpanBytes / 2);
        if (random_() % 2 == 0) at = at / kBlockBytes * kBlockBytes;
        Bytes data = randomBytes(random_, 1 + random_() % (2 * kBlockBytes));
        if (!next) next.emplace();
        next->resize(std::max<size_t>(next->size(), at + data.size()));
        std::copy(data.begin(), data.end(), next->begin() + static_cast<ptrdiff_t>(at));
        history.states.push_back({begun, next});
        REQUIRE(store_.write(id, at, data) == 0);
        return;
      }
    }
  }

  void check(uint64_t number, size_t cut) {
    auto& history = histories_[number];
    auto states = history.possible(cut);
    auto back = store_.read(idOf(number), 0, 2 * kSpanBytes, true);
    bool mayBeMissing = false, destroying = false;
    for (auto* state : states) {
      mayBeMissing |= !state->content;
      destroying |= state->destroying;
    }
    INFO("object " << number << ", cut after " << cut << " operations, states " << states.size());
    if (back.error != 0) {
      REQUIRE(destroying);  // half destroyed; the MDS was not answered and asks again
      REQUIRE(store_.wait(store_.store().destroy(idOf(number))).ok());
      return history.start(std::nullopt);
    }
    if (back.missing) {
      REQUIRE(mayBeMissing);
      return history.start(std::nullopt);
    }
    REQUIRE(back.sumsRight);
    REQUIRE(mayBe(states, back.data));
    history.start(back.data);
  }

  StoreFixture store_;
  std::mt19937_64 random_;
  test::Random diskRandom_;
  DiskRecorder* recorder_ = nullptr;
  std::map<uint64_t, History> histories_;
};

}  // namespace

TEST_CASE("what was synced survives power cuts, and nothing seems damaged after them") {
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  Lives lives(seed);
  for (uint64_t cut = 0; cut < cutsWanted(); ++cut) {
    INFO("cut " << cut);
    lives.liveAndDie();
  }
}
