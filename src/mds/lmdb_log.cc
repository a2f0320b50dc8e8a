#include "mds/lmdb_log.h"

#include <kj/debug.h>

#include <cstdlib>
#include <utility>

#include "mds/state_machine.h"
#include "trainfs/logging.h"

namespace trainfs::mds {

LmdbLog::LmdbLog(Store& store) : store_(store), answering_(nullptr), writer_() {
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
  if (waiting_.size() >= kLogWaitingMax)
    return KJ_EXCEPTION(OVERLOADED, "too many commands wait for the log", waiting_.size());
  auto answer = kj::newPromiseAndFulfiller<Outcome>();
  waiting_.push_back(kj::mv(answer.fulfiller));
  {
    std::lock_guard lock(mutex_);
    queued_.push_back(Entry{std::move(command), {}});
  }
  wake_.notify_one();
  return kj::mv(answer.promise);
}

kj::Promise<void> LmdbLog::drain() {
  if (waiting_.empty()) return kj::READY_NOW;
  auto empty = kj::newPromiseAndFulfiller<void>();
  drained_.push_back(kj::mv(empty.fulfiller));
  return kj::mv(empty.promise);
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
    if (waiting_.empty()) {
      for (auto& waiter : drained_) waiter->fulfill();
      drained_.clear();
    }
    if (done.empty()) co_await bell.promise;
  }
}

void LmdbLog::answerOne(Entry& entry) {
  auto fulfiller = kj::mv(waiting_.front());
  waiting_.pop_front();
  KJ_IF_MAYBE (failure, entry.failure) {
    fulfiller->reject(kj::mv(*failure));
  } else {
    fulfiller->fulfill(kj::mv(entry.outcome));
  }
}

// ---- writer thread ----

void LmdbLog::write() {
  std::vector<Entry> batch;
  while (takeBatch(batch)) {
    commitBatch(batch);
    std::lock_guard lock(mutex_);
    for (auto& entry : batch) done_.push_back(std::move(entry));
    KJ_IF_MAYBE (bell, bell_) {
      (*bell)->fulfill();
      bell_ = nullptr;
    }
  }
}

bool LmdbLog::takeBatch(std::vector<Entry>& batch) {
  batch.clear();
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return stopping_ || !queued_.empty(); });
  while (!queued_.empty() && batch.size() < kLogBatchMax) {
    batch.push_back(std::move(queued_.front()));
    queued_.pop_front();
  }
  return !batch.empty();
}

// An apply() that throws leaves its transaction in an unknown state. Everything before it is
// applied again without it, then the rest: its neighbours in the batch must not notice.
void LmdbLog::commitBatch(std::vector<Entry>& batch) {
  size_t begin = 0;
  while (begin < batch.size()) {
    size_t failed = applyRange(batch, begin, batch.size());
    if (failed == batch.size()) return;
    size_t again = applyRange(batch, begin, failed);
    KJ_ASSERT(again == failed, "apply() is not deterministic");
    begin = failed + 1;
  }
}

// Applies and commits [begin, end). Returns end, or, with nothing committed, the index of the entry
// whose apply() threw.
size_t LmdbLog::applyRange(std::vector<Entry>& batch, size_t begin, size_t end) {
  if (begin == end) return end;
  auto txn = store_.begin();
  for (size_t i = begin; i < end; ++i) {
    auto failure =
        kj::runCatchingExceptions([&] { batch[i].outcome = apply(batch[i].command, *txn); });
    KJ_IF_MAYBE (e, failure) {
      spdlog::error("a command could not be applied: {}", e->getDescription().cStr());
      batch[i].failure = kj::mv(*e);
      return i;
    }
  }
  auto failure = kj::runCatchingExceptions([&] { txn->commit(); });
  KJ_IF_MAYBE (e, failure) {
    // Whether the batch is on disk is unknown: answering either way could be wrong. A restart finds
    // out.
    spdlog::critical("the metadata store refused a commit, stopping: {}",
                     e->getDescription().cStr());
    std::abort();
  }
  std::lock_guard lock(mutex_);
  ++commits_;
  return end;
}

}  // namespace trainfs::mds
