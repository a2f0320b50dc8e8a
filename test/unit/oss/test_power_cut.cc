// Power cuts of an OST: a store lives, serves random requests, loses its power at a random change
// of its files, and lives again from what the disk may hold then; recovery is cut like everything
// else. After each cut everything whose sync was answered is there, whatever was not is a mixture
// of what it was since, and nothing is reported as damaged. Before its power is cut a store may be
// killed and live again in the same boot: then all that was answered is there, synced or not, and
// what the next life syncs includes what the last one left unsynced. TRAINFS_POWER_CUTS=1000 is the
// long form (TMPDIR=/dev/shm spares the real disk), TRAINFS_SEED replays.
#include <fcntl.h>

#include <catch2/catch_test_macros.hpp>
#include <map>

#include "lib/disk_recorder.h"
#include "lib/long_form.h"
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
  return test::longForm("TRAINFS_POWER_CUTS", kCutsShort);
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

// What an object was, from the last cut on.
struct History {
  struct State {
    size_t begun;  // recorded operations before the change
    Content content;
    bool destroying = false;
    size_t answered = SIZE_MAX;  // recorded operations by then
  };
  struct Promise {
    size_t answered;
    size_t state;  // in `states`
  };
  std::vector<State> states;
  std::vector<Promise> promises;

  void start(Content content) {
    states = {{.begun = 0, .content = std::move(content), .answered = 0}};
    promises = {{0, 0}};
  }
  const Content& now() const { return states.back().content; }
  void begin(size_t operations, Content content, bool destroying = false) {
    states.push_back({operations, std::move(content), destroying});
  }
  void answer(size_t operations) { states.back().answered = operations; }
  void promise(size_t operations) { promises.push_back({operations, states.size() - 1}); }

  // The states of which a cut after n operations may leave parts.
  std::vector<const State*> afterCut(size_t n) const {
    size_t first = 0;
    for (auto& promise : promises)
      if (promise.answered <= n) first = promise.state;
    return begunFrom(first, n);
  }
  // A kill leaves the last one that was answered, and perhaps part of the one under way.
  std::vector<const State*> afterKill(size_t n) const {
    size_t first = 0;
    for (size_t i = 0; i < states.size(); ++i)
      if (states[i].answered <= n) first = i;
    return begunFrom(first, n);
  }
  // What would have been after a kill is not.
  void forgetAfter(size_t n) {
    while (promises.back().answered > n) promises.pop_back();
    while (states.back().begun >= n && states.back().answered > n) states.pop_back();
  }

 private:
  std::vector<const State*> begunFrom(size_t first, size_t n) const {
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

  // From what the last cut has left: some lives that end by a kill, and one that ends by a cut.
  void liveAndDie(uint64_t kills) {
    DiskRecorder recorder(store_.path());
    RingRecorder ring(recorder);
    recorder_ = &recorder;
    store_.reactor().observe(&ring);
    store_.reboot();
    live();
    size_t ended = 0;
    for (; kills > 0; --kills) {
      ended = endFrom(ended);
      auto next = std::make_unique<test::TempDir>();
      recorder.kill(ended, next->path());
      store_.reopen(std::move(next));
      for (uint64_t i = 0; i < kObjects; ++i) checkAfterKill(i, ended);
      live();
    }
    ended = endFrom(ended);
    store_.reactor().observe(nullptr);
    auto next = std::make_unique<test::TempDir>();
    recorder.replay(ended, diskRandom_, next->path());
    store_.reboot(std::move(next));
    for (uint64_t i = 0; i < kObjects; ++i) checkAfterCut(i, ended);
  }

 private:
  ObjectId idOf(uint64_t number) { return objectNumber(1 + number * 1000); }

  void live() {
    for (int i = 0; i < kStepsPerLife; ++i) step();
  }

  // After how many operations, at least so many, a life ends.
  size_t endFrom(size_t least) {
    store_.abandon();
    return least + random_() % (recorder_->operations() - least + 1);
  }

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
        return destroy(number);
      case 3: {
        uint64_t size = random_() % kSpanBytes;
        if (next) next->resize(size);
        history.begin(begun, next);
        REQUIRE(store_.truncate(id, size).ok());
        return history.answer(recorder_->operations());
      }
      case 4: {
        FileRange range{random_() % kSpanBytes, 1 + random_() % (2 * kBlockBytes)};
        for (uint64_t at = range.offsetBytes; next && at < range.endBytes() && at < next->size();
             ++at)
          (*next)[at] = std::byte{0};
        history.begin(begun, next);
        REQUIRE(store_.punch(id, range).ok());
        return history.answer(recorder_->operations());
      }
      default: {
        uint64_t at = random_() % (kSpanBytes / 2);
        if (random_() % 2 == 0) at = at / kBlockBytes * kBlockBytes;
        Bytes data = randomBytes(random_, 1 + random_() % (2 * kBlockBytes));
        if (!next) next.emplace();
        next->resize(std::max<size_t>(next->size(), at + data.size()));
        std::copy(data.begin(), data.end(), next->begin() + static_cast<ptrdiff_t>(at));
        history.begin(begun, next);
        REQUIRE(store_.write(id, at, data) == 0);
        return history.answer(recorder_->operations());
      }
    }
  }

  void destroy(uint64_t number) {
    auto& history = histories_[number];
    history.begin(recorder_->operations(), std::nullopt, /*destroying=*/true);
    REQUIRE(store_.wait(store_.store().destroy(idOf(number))).ok());
    history.answer(recorder_->operations());
    history.promise(recorder_->operations());
  }

  // What is to be seen of an object of which that may be left.
  StoreFixture::ReadBack look(uint64_t number, const std::vector<const History::State*>& states) {
    auto back = store_.read(idOf(number), 0, 2 * kSpanBytes, true);
    bool mayBeMissing = false, destroying = false;
    for (auto* state : states) {
      mayBeMissing |= !state->content;
      destroying |= state->destroying;
    }
    if (back.error != 0) {
      REQUIRE(destroying);  // half destroyed; the MDS was not answered and asks again
    } else if (back.missing) {
      REQUIRE(mayBeMissing);
    } else {
      REQUIRE(back.sumsRight);
      REQUIRE(mayBe(states, back.data));
    }
    return back;
  }

  static Content contentOf(const StoreFixture::ReadBack& back) {
    return back.missing ? Content() : Content(back.data);
  }

  void checkAfterKill(uint64_t number, size_t kill) {
    auto& history = histories_[number];
    INFO("object " << number << ", killed after " << kill << " operations");
    auto back = look(number, history.afterKill(kill));
    history.forgetAfter(kill);
    if (back.error != 0) return destroy(number);
    history.begin(kill, contentOf(back));
    history.answer(kill);
  }

  void checkAfterCut(uint64_t number, size_t cut) {
    auto& history = histories_[number];
    INFO("object " << number << ", cut after " << cut << " operations");
    auto back = look(number, history.afterCut(cut));
    if (back.error != 0) REQUIRE(store_.wait(store_.store().destroy(idOf(number))).ok());
    history.start(back.error != 0 ? Content() : contentOf(back));
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
    lives.liveAndDie(/*kills=*/0);
  }
}

TEST_CASE("what was synced survives power cuts that come after the store was killed") {
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  Lives lives(seed);
  for (uint64_t cut = 0; cut < cutsWanted(); ++cut) {
    INFO("cut " << cut);
    lives.liveAndDie(/*kills=*/1 + cut % 2);
  }
}
