#include "mds/lmdb_log.h"

#include <kj/debug.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "mds/command_record.h"
#include "mds/namespace.h"
#include "mds/state_machine.h"
#include "trainfs/logging.h"

namespace trainfs::mds {
namespace {

// A full disk is asked again after this.
constexpr auto kRoomPause = std::chrono::seconds(1);

bool grows(const Operation& op) {
  return std::holds_alternative<CreateOp>(op) || std::holds_alternative<LinkOp>(op) ||
         std::holds_alternative<SetXattrOp>(op) || std::holds_alternative<SetLayoutOp>(op) ||
         std::holds_alternative<InstantiateOp>(op);
}

}  // namespace

LmdbLog::LmdbLog(Journal& journal) : LmdbLog(journal.store(), &journal) {}
LmdbLog::LmdbLog(Store& store) : LmdbLog(store, nullptr) {}

LmdbLog::LmdbLog(Store& store, Journal* journal)
    : store_(store),
      journal_(journal),
      nextIndex_(appliedIndex(*store_.snapshot()) + 1),
      answering_(nullptr),
      writer_() {
  answering_ = answerForever().eagerlyEvaluate([](kj::Exception&& e) {
    spdlog::critical("the log cannot answer any more: {}", e.getDescription().cStr());
    std::abort();
  });
  writer_ = std::thread([this] { write(); });
}

LmdbLog::~LmdbLog() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  writer_.join();
}

kj::Promise<Outcome> LmdbLog::append(Command command) {
  auto bytes = encodeCommand(command);
  if (bytes.size() > kCommandBytesMax)
    return KJ_EXCEPTION(FAILED, "a command too long for the log", bytes.size());
  if (waiting_.size() >= kLogWaitingMax || waitingBytes_ + bytes.size() > kLogWaitingBytesMax)
    return KJ_EXCEPTION(OVERLOADED, "too many commands wait for the log", waiting_.size(),
                        waitingBytes_);
  auto answer = kj::newPromiseAndFulfiller<Outcome>();
  waiting_.push_back(kj::mv(answer.fulfiller));
  waitingBytes_ += bytes.size();
  {
    std::lock_guard lock(mutex_);
    queued_.push_back(Entry{std::move(command), std::move(bytes), {}});
  }
  wake_.notify_one();
  return kj::mv(answer.promise);
}

uint64_t LmdbLog::commits() const {
  std::lock_guard lock(mutex_);
  return commits_;
}

// ---- event loop ----

kj::Promise<void> LmdbLog::answerForever() {
  for (;;) {
    auto bell = kj::newPromiseAndCrossThreadFulfiller<void>();
    std::vector<Entry> done;
    {
      std::lock_guard lock(mutex_);
      done.swap(done_);
      if (done.empty()) bell_ = kj::mv(bell.fulfiller);
    }
    for (auto& entry : done) answerOne(entry);
    if (done.empty()) co_await bell.promise;
  }
}

void LmdbLog::answerOne(Entry& entry) {
  auto fulfiller = kj::mv(waiting_.front());
  waiting_.pop_front();
  waitingBytes_ -= entry.bytes.size();
  KJ_IF_MAYBE (failure, entry.applied.failure) {
    fulfiller->reject(kj::mv(*failure));
  } else {
    fulfiller->fulfill(kj::mv(entry.applied.outcome));
  }
}

// ---- writer thread ----

void LmdbLog::write() {
  while (waitForCommands()) {
    std::vector<Entry> batch;
    auto failure = kj::runCatchingExceptions([&] {
      if (!gaveUp_) lookForRoom();
      batch = takeBatch();
      if (!gaveUp_) return logAndApply(batch);
      for (auto& entry : batch) reject(entry);
    });
    KJ_IF_MAYBE (exception, failure) {
      // Whether the batch is on disk is unknown: answering either way could be wrong. A restart
      // finds out.
      spdlog::critical("the metadata store refused a commit, stopping: {}",
                       exception->getDescription().cStr());
      std::abort();
    }
    std::lock_guard lock(mutex_);
    for (auto& entry : batch) done_.push_back(std::move(entry));
    KJ_IF_MAYBE (bell, bell_) {
      (*bell)->fulfill();
      bell_ = nullptr;
    }
  }
}

// False: there are none, and there will be none.
bool LmdbLog::waitForCommands() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return stopping_ || !queued_.empty(); });
  return !queued_.empty();
}

// Before a batch is taken: how large it may be depends on it.
void LmdbLog::lookForRoom() {
  auto room = store_.makeRoom();
  if (room != Room::kPlenty && journal_ != nullptr) {
    // What was freed since the last checkpoint can be used only after the next. A full store is
    // slow.
    journal_->checkpoint();
    room = store_.makeRoom();
  }
  if (room == std::exchange(room_, room)) return;
  if (room == Room::kPlenty)
    spdlog::warn("the metadata store has room again");
  else
    spdlog::error("the metadata store is full: {}", room == Room::kReserve
                                                        ? "it takes only what frees something"
                                                        : "even its reserve is used up");
}

std::vector<LmdbLog::Entry> LmdbLog::takeBatch() {
  std::vector<Entry> batch;
  size_t most = room_ == Room::kPlenty ? kLogBatchMax : kLogReserveBatchMax;
  std::lock_guard lock(mutex_);
  for (size_t bytes = 0; !queued_.empty() && batch.size() < most && bytes < kLogBatchBytesMax;) {
    bytes += queued_.front().bytes.size();
    batch.push_back(std::move(queued_.front()));
    queued_.pop_front();
  }
  return batch;
}

void LmdbLog::logAndApply(std::vector<Entry>& batch) {
  refuseWhatGrows(batch);
  std::vector<Entry*> entries;
  std::vector<std::string_view> bytes;
  for (auto& entry : batch) {
    if (entry.refused) continue;
    entries.push_back(&entry);
    bytes.push_back(entry.bytes);
  }
  if (entries.empty()) return;
  if (journal_ != nullptr) journal_->append(nextIndex_, bytes);
  if (applyWhenThereIsRoom(entries))
    nextIndex_ += entries.size();
  else
    gaveUp_ = journal_ != nullptr;
}

// For the peer to send again.
void LmdbLog::reject(Entry& entry) {
  entry.refused = true;
  entry.applied.failure = KJ_EXCEPTION(OVERLOADED, "the metadata store is full");
}

// Before anything is logged: what is in the log must be applied. A request that is sent again gets
// the outcome that it had.
void LmdbLog::refuseWhatGrows(std::vector<Entry>& batch) {
  if (room_ == Room::kPlenty) return;
  auto view = store_.snapshot();
  for (auto& entry : batch) {
    bool fits = room_ == Room::kReserve && !grows(entry.command.op);
    if (fits || isRepeated(entry.command, *view)) continue;
    if (entry.command.slot == kNoSlot && !grows(entry.command.op)) {
      reject(entry);
      continue;
    }
    entry.refused = true;
    entry.applied.outcome.error = ENOSPC;
  }
}

// Commands that are in the log and do not fit into the store wait until they do: the reserve was
// taken by others. False: the server stops meanwhile, its next start applies them; or, without a
// log, they are rejected.
bool LmdbLog::applyWhenThereIsRoom(const std::vector<Entry*>& entries) {
  std::vector<const Command*> commands;
  for (auto* entry : entries) commands.push_back(&entry->command);
  for (auto pause = std::chrono::seconds(0);; pause = kRoomPause) {
    try {
      auto applied = applyBatch(store_, commands, nextIndex_);
      for (size_t i = 0; i < entries.size(); ++i) entries[i]->applied = std::move(applied[i]);
      std::lock_guard lock(mutex_);
      ++commits_;
      return true;
    } catch (kj::Exception& e) {
      if (e.getType() != kj::Exception::Type::OVERLOADED) throw;
      spdlog::warn("commands wait for room: {}", e.getDescription().cStr());
    }
    std::unique_lock lock(mutex_);
    bool gaveUp = journal_ == nullptr || wake_.wait_for(lock, pause, [this] { return stopping_; });
    if (!gaveUp) {
      lock.unlock();
      journal_->checkpoint();
      store_.makeRoom();
      continue;
    }
    for (auto* entry : entries) reject(*entry);
    return false;
  }
}

}  // namespace trainfs::mds
