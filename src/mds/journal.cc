#include "mds/journal.h"

#include <kj/debug.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "mds/batch.h"
#include "mds/command_record.h"
#include "mds/namespace.h"
#include "trainfs/logging.h"

namespace trainfs::mds {
namespace {

// Records are cut at this size, so that a damaged one does not take much with it.
constexpr size_t kRecordBytesMax = kMiB;

// Applies again what of the record the store does not have; returns how many commands.
size_t applyAgain(Store& store, const LogRecord& record, uint64_t appliedIndex) {
  size_t known = record.firstIndex <= appliedIndex ? appliedIndex - record.firstIndex + 1 : 0;
  std::vector<Command> commands;
  for (size_t i = known; i < record.commands.size(); ++i)
    commands.push_back(decodeCommand(record.commands[i]));
  std::vector<const Command*> all;
  for (auto& command : commands) all.push_back(&command);
  applyBatch(store, all, record.firstIndex + known);
  return commands.size();
}

}  // namespace

std::unique_ptr<Journal> Journal::open(const std::string& directory,
                                       const JournalOptions& options) {
  std::unique_ptr<Journal> journal(new Journal(directory, options));
  auto last = journal->file_.load();
  if (last)
    journal->recover(*last);
  else
    journal->startFresh();
  journal->lastAppended_ = journal->lastIndex_;
  journal->thread_ = std::thread([&j = *journal] { j.checkpointForever(); });
  return journal;
}

Journal::Journal(std::string directory, const JournalOptions& options)
    : directory_(std::move(directory)), options_(options), file_(directory_) {}

Journal::~Journal() {
  if (!thread_.joinable()) return;  // open() failed
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  // Commands that found no room in the store are for the next start.
  auto failure = kj::runCatchingExceptions(
      [&] { saveCheckpoint(appliedIndex(*store_->snapshot()) == lastAppended_); });
  KJ_IF_MAYBE (exception, failure)
    spdlog::error("the last checkpoint failed, the next start recovers: {}",
                  exception->getDescription().cStr());
}

// As mkfs has left it, with everything on disk.
void Journal::startFresh() {
  auto options = options_.store;
  options.syncedCommits = false;
  store_ = LmdbStore::open(directory_, options);
  KJ_REQUIRE(appliedIndex(*store_->snapshot()) == 0,
             "the checkpoint of this metadata store is missing", directory_ + "/checkpoint");
  auto logOptions = options_.log;
  logOptions.needsCut = [this] { askForCheckpoint(); };
  log_ = std::make_unique<SegmentLog>(directory_ + "/log", logOptions);
  log_->replay(0, [&](const LogRecord&) {
    KJ_FAIL_REQUIRE("there is a log of commands, but no checkpoint", directory_ + "/checkpoint");
  });
  saveCheckpoint(false);
}

void Journal::recover(const Checkpoint& from) {
  auto options = options_.store;
  options.syncedCommits = false;
  options.meta = from.meta;
  store_ = LmdbStore::open(directory_, options);
  pin_ = store_->pin();  // before anything is written
  auto applied = appliedIndex(pin_->view());
  KJ_REQUIRE(applied == from.appliedIndex, "the checkpoint is that of another metadata store",
             directory_ + "/checkpoint", from.appliedIndex, applied);
  auto logOptions = options_.log;
  logOptions.needsCut = [this] { askForCheckpoint(); };
  log_ = std::make_unique<SegmentLog>(directory_ + "/log", logOptions);
  log_->replay(applied, [&](const LogRecord& record) {
    KJ_REQUIRE(store_->makeRoom() != Room::kNone,
               "there is no room on disk to apply the log of the metadata store", directory_);
    recovered_ += applyAgain(*store_, record, applied + recovered_);
  });
  KJ_REQUIRE(recovered_ == 0 || !from.clean, "the log has commands from after an orderly stop",
             directory_, recovered_);
  saveCheckpoint(false);
}

void Journal::append(uint64_t firstIndex, const std::vector<std::string_view>& commands) {
  lastAppended_ = firstIndex + commands.size() - 1;
  size_t bytesMax = std::min<size_t>(kRecordBytesMax, options_.log.segmentBytes / 2);
  LogRecord record{.firstIndex = firstIndex, .commands = {}};
  size_t bytes = 0;
  for (size_t i = 0; i < commands.size(); ++i) {
    if (!record.commands.empty() && bytes + commands[i].size() > bytesMax) {
      // Were two records on their way at once, the second could be there without the first.
      log_->append(record);
      log_->sync();
      record = {.firstIndex = firstIndex + i, .commands = {}};
      bytes = 0;
    }
    record.commands.push_back(commands[i]);
    bytes += commands[i].size();
  }
  log_->append(record);
  log_->sync();
  bool grown;
  {
    std::lock_guard lock(mutex_);
    grown = store_->fileBytes() > bytesAtCheckpoint_ + options_.growthBytesMax;
  }
  if (grown) askForCheckpoint();
}

// ---- checkpoints ----

void Journal::checkpoint() {
  saveCheckpoint(false);
}

void Journal::saveCheckpoint(bool clean) {
  std::lock_guard lock(checkpointing_);
  auto pin = store_->pin();
  auto applied = appliedIndex(pin->view());
  store_->sync();
  file_.save({.appliedIndex = applied, .clean = clean, .meta = pin->meta()});
  pin_ = std::move(pin);
  lastIndex_ = applied;
  log_->cut(applied);
  std::lock_guard alsoLock(mutex_);
  bytesAtCheckpoint_ = store_->fileBytes();
}

bool Journal::changed() {
  std::lock_guard lock(checkpointing_);
  return appliedIndex(*store_->snapshot()) != lastIndex_;
}

void Journal::askForCheckpoint() {
  {
    std::lock_guard lock(mutex_);
    if (asked_) return;
    asked_ = true;
  }
  wake_.notify_one();
}

void Journal::checkpointForever() {
  for (;;) {
    bool asked = false;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, options_.checkpointInterval, [this] { return stopping_ || asked_; });
      if (stopping_) return;
      asked = std::exchange(asked_, false);
    }
    auto failure = kj::runCatchingExceptions([&] {
      if (asked || changed()) saveCheckpoint(false);
    });
    KJ_IF_MAYBE (exception, failure) {
      // What the disk has lost it may not report a second time.
      spdlog::critical("a checkpoint of the metadata store failed, stopping: {}",
                       exception->getDescription().cStr());
      std::abort();
    }
  }
}

}  // namespace trainfs::mds
