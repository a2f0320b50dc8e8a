// Power cuts of an MDT: a server lives, serves random commands, loses its power at a random change
// of its files, and lives again from what the disk may hold then; recovery is cut like everything
// else. After each cut the store must be exactly what the first k commands make, each applied once,
// k being at least the last that was answered. Before its power is cut a server may be killed and
// start again from what is in the page cache, of which a cut may still take what nobody has synced.
// TRAINFS_POWER_CUTS=1000 is the long form (some minutes; TMPDIR=/dev/shm spares the real disk),
// TRAINFS_SEED replays.
#include <kj/async-io.h>
#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <memory>

#include "lib/disk_recorder.h"
#include "lib/long_form.h"
#include "lib/mem_store.h"
#include "lib/seed.h"
#include "lib/temp_dir.h"
#include "mds/batch.h"
#include "mds/journal.h"
#include "mds/lmdb_log.h"
#include "mds/namespace.h"
#include "mds/state_machine.h"
#include "striping/placement.h"
#include "unit/mds/store_check.h"

using namespace trainfs;
using namespace trainfs::mds;
using namespace trainfs::test;

namespace {

constexpr uint64_t kCutsShort = 40;
constexpr uint64_t kSessions = 3;
constexpr uint64_t kSlots = 4;

uint64_t cutsWanted() {
  return test::longForm("TRAINFS_POWER_CUTS", kCutsShort);
}

// Few names and inodes, so that commands meet each other; requests in slots, as clients send them.
class CommandSource {
 public:
  explicit CommandSource(Random& random) : random_(random) {}

  Command next(const View& view) {
    Command command{.now = {static_cast<int64_t>(++count_), 0}, .op = operation(view)};
    auto all = sessions(view);
    if (all.size() < kSessions || random_.chance(1)) {
      command.op = OpenSessionOp{"client"};
    } else if (all.size() > kSessions) {
      command.op = EndSessionOp{all.front().id};
    } else if (random_.chance(90)) {
      command.session = all[random_.between(0, all.size() - 1)].id;
      command.slot = static_cast<uint16_t>(random_.between(0, kSlots - 1));
      command.sequence = count_;
    }
    return command;
  }

 private:
  InodeId inode() { return {random_.between(1, 30)}; }
  InodeId directory() { return random_.chance(60) ? kRootInode : inode(); }
  std::string name() { return std::string(1, static_cast<char>(random_.between('a', 'h'))); }

  Operation create(const View& view) {
    static constexpr uint32_t kTypes[] = {S_IFREG, S_IFREG, S_IFDIR, S_IFLNK};
    CreateOp op{
        .parent = directory(), .name = name(), .mode = kTypes[random_.between(0, 3)] | 0644u};
    if (S_ISREG(op.mode))
      op.layout = *striping::place(
          striping::defaultLayout(),
          {{.index = 0, .active = true, .totalBytes = kGiB, .availableBytes = kGiB}}, 0);
    if (S_ISLNK(op.mode)) op.target = std::string(random_.between(1, 4000), 't');
    // Numbers come again only after theirs are gone; the store takes any that is new to it.
    op.newInode = {std::max(nextInode(view).value, nextInode_)};
    nextInode_ = op.newInode.value + 1;
    return op;
  }

  Operation operation(const View& view) {
    switch (random_.between(0, 14)) {
      case 0:
        return LinkOp{inode(), directory(), name()};
      case 1:
      case 2:
        return UnlinkOp{directory(), name(), {}};
      case 3:
        return RmdirOp{directory(), name(), {}};
      case 4:
      case 5:
        return RenameOp{directory(), name(), directory(), name()};
      case 6:
        return SetAttrOp{.inode = inode(), .mask = kSetSize, .sizeBytes = random_.between(0, 9999)};
      case 14:
        return truncation(view);
      case 7:
        return SetXattrOp{inode(), "user." + name(), std::string(random_.between(0, 9000), 'x')};
      case 8:
        return RemoveXattrOp{inode(), "user." + name()};
      case 9:
        if (auto all = garbage(view, 1); !all.empty())
          return ReapedOp{all[0].inode, all[0].layout.generation};
        return create(view);
      default:
        return create(view);
    }
  }

  // Begins one, or goes on with the first that was begun.
  Operation truncation(const View& view) {
    auto begun = truncations(view);
    if (begun.empty() || random_.between(0, 1) == 0)
      return BeginTruncationOp{{.inode = inode(),
                                .mask = kSetSize | kCutObjects,
                                .sizeBytes = random_.between(0, 9999)}};
    auto& set = std::get<SetAttrOp>(begun[0].op);
    if (random_.between(0, 3) == 0) return EndTruncationOp{set.inode, EIO};
    return set;
  }

  Random& random_;
  uint64_t count_ = 0;
  uint64_t nextInode_ = 0;
};

MemStore::Map contentOf(const View& view) {
  MemStore::Map content;
  view.scan("", "", [&](std::string_view key, std::string_view value) {
    content.emplace(key, value);
    return true;
  });
  return content;
}

void copyContent(Store& from, Store& to) {
  auto txn = to.begin();
  for (auto& [key, value] : contentOf(*from.snapshot())) txn->put(key, value);
  txn->commit();
}

void formatStore(Store& store) {
  auto txn = store.begin();
  format(*txn, "trainfs", 0, {1, 0});
  txn->commit();
}

class PowerCuts {
 public:
  explicit PowerCuts(uint64_t seed) : random_(seed), source_(random_) {
    formatStore(model_);
    formatStore(*LmdbStore::open(home_->path(), {.mapBytes = kMapBytes, .create = true}));
  }

  // From what the last cut has left: some lives that end by a kill, and one that ends by a cut.
  void liveAndDie(uint64_t kills) {
    DiskRecorder recorder(home_->path());
    live(recorder, /*afterKill=*/false);
    size_t ended = 0;
    for (; kills > 0; --kills) {
      ended = endAt(random_.between(ended, recorder.operations()));
      auto next = std::make_unique<TempDir>();
      recorder.kill(ended, next->path());
      home_ = std::move(next);
      live(recorder, /*afterKill=*/true);
    }
    ended = endAt(random_.between(ended, recorder.operations()));
    auto next = std::make_unique<TempDir>();
    recorder.replay(ended, random_, next->path());
    home_ = std::move(next);
  }

  uint64_t commandsKept() const { return modelIndex_; }

 private:
  static constexpr uint64_t kMapBytes = 256 * kMiB;

  JournalOptions options() {
    JournalOptions options;
    options.store.mapBytes = kMapBytes;
    options.store.reserveBytes = kMiB;
    options.log = {.segmentBytes = 16 * kKiB, .segmentsLeast = 3, .segmentsMax = 6};
    options.checkpointInterval = std::chrono::milliseconds(random_.between(1, 60));
    options.growthBytesMax = random_.between(16, 1024) * kKiB;
    return options;
  }

  void live(DiskRecorder& recorder, bool afterKill) {
    auto journal = Journal::open(home_->path(), options());
    auto kept = checkStore(journal->store(), afterKill);
    answers_[kept] = recorder.operations();  // from now on anyone may see it
    serve(*journal, recorder);
  }

  // What was answered before the operation n is for ever.
  size_t endAt(size_t n) {
    for (auto& [index, operations] : answers_)
      if (operations <= n) answered_ = std::max(answered_, index);
    answers_.clear();
    return n;
  }

  // Returns how many commands there are. After a kill not all of them need be on disk, so the model
  // does not go on to them yet.
  uint64_t checkStore(Store& store, bool afterKill) {
    auto view = store.snapshot();
    uint64_t kept = appliedIndex(*view);
    REQUIRE(kept >= answered_);
    REQUIRE(kept >= modelIndex_);
    REQUIRE(kept <= modelIndex_ + commands_.size());
    commands_.resize(kept - modelIndex_);  // the others are gone
    MemStore ahead;
    auto& model = afterKill ? ahead : model_;
    if (afterKill) copyContent(model_, ahead);
    for (uint64_t index = modelIndex_; auto& command : commands_)
      applyBatch(model, {&command}, ++index);
    if (!afterKill) {
      commands_.clear();
      modelIndex_ = kept;
    }
    REQUIRE(contentOf(*view) == contentOf(*model.snapshot()));
    REQUIRE(problemsOf(*view) == std::vector<std::string>{});
    return kept;
  }

  void serve(Journal& journal, DiskRecorder& recorder) {
    LmdbLog log(journal);
    std::map<std::pair<SessionId, uint16_t>, std::pair<Command, Outcome>> last;
    uint64_t index = modelIndex_ + commands_.size();
    for (uint64_t round = random_.between(1, random_.chance(10) ? 80 : 12); round > 0; --round) {
      std::vector<kj::Promise<Outcome>> waiting;
      size_t first = commands_.size();
      for (uint64_t i = random_.between(1, 8); i > 0; --i) {
        commands_.push_back(source_.next(*journal.store().snapshot()));
        waiting.push_back(log.append(commands_.back()));
      }
      for (size_t i = 0; i < waiting.size(); ++i) {
        auto outcome = waiting[i].wait(io_.waitScope);
        answers_[++index] = recorder.operations();
        auto& command = commands_[first + i];
        if (command.slot != kNoSlot && outcome.error != ESTALE)
          last[{command.session, command.slot}] = {command, outcome};
      }
      if (!last.empty() && random_.chance(30)) resend(log, last, index, recorder);
    }
  }

  // A client that lost its connection gets the outcome that there was.
  void resend(LmdbLog& log, auto& last, uint64_t& index, DiskRecorder& recorder) {
    auto& [command, outcome] = std::next(last.begin(), random_.between(0, last.size() - 1))->second;
    commands_.push_back(command);
    auto again = log.append(command).wait(io_.waitScope);
    answers_[++index] = recorder.operations();
    if (again.error != ESTALE) REQUIRE(again == outcome);
  }

  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  Random random_;
  CommandSource source_;
  std::unique_ptr<TempDir> home_ = std::make_unique<TempDir>();
  MemStore model_;
  uint64_t modelIndex_ = 0;             // commands that the model has
  std::vector<Command> commands_;       // after those, in the order of the log
  uint64_t answered_ = 0;               // the last one whose answer was out before a cut
  std::map<uint64_t, size_t> answers_;  // of this life: index -> changes to the disk by then
};

}  // namespace

TEST_CASE("what an MDT answered outlives power cuts, and nothing is applied twice") {
  uint64_t seed = testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  PowerCuts cuts(seed);
  for (uint64_t i = 0; i < cutsWanted(); ++i) {
    INFO("cut " << i);
    cuts.liveAndDie(/*kills=*/0);
  }
  CHECK(cuts.commandsKept() > cutsWanted());
}

TEST_CASE("what an MDT answered outlives power cuts that come after it was killed") {
  uint64_t seed = testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  PowerCuts cuts(seed);
  Random random(seed);
  for (uint64_t i = 0; i < cutsWanted(); ++i) {
    INFO("cut " << i);
    cuts.liveAndDie(/*kills=*/random.between(1, 2));
  }
  CHECK(cuts.commandsKept() > cutsWanted());
}
