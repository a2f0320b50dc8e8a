// The log of an MDT without replicas: every batch of waiting commands is one durable store
// transaction. Made, called and destroyed on one event loop; owns the one thread that writes the
// store.
#pragma once

#include <kj/async.h>
#include <kj/exception.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "mds/log.h"

namespace trainfs::mds {

// Commands that may wait for the writer; beyond it append() rejects with OVERLOADED and the peer
// resends.
inline constexpr size_t kLogWaitingMax = 65536;
// Commands in one transaction: bounds how long the first of them waits for the last.
inline constexpr size_t kLogBatchMax = 1024;

class LmdbLog final : public Log {
 public:
  explicit LmdbLog(Store& store);
  // What was appended is still made durable and applied; its promises are dropped unanswered.
  ~LmdbLog() override;

  kj::Promise<Outcome> append(Command command) override;

  // Resolves when everything appended so far has been answered.
  kj::Promise<void> drain();

  // Transactions committed, for tests and metrics.
  uint64_t commits() const;

 private:
  struct Entry {
    Command command;
    Outcome outcome;
    kj::Maybe<kj::Exception> failure;
  };
  // Writer thread.
  void write();
  bool takeBatch(std::vector<Entry>& batch);
  void commitBatch(std::vector<Entry>& batch);
  size_t applyRange(std::vector<Entry>& batch, size_t begin, size_t end);

  // Event loop.
  kj::Promise<void> answerForever();
  void answerOne(Entry& entry);

  Store& store_;
  mutable std::mutex mutex_;      // over what follows, to waiting_
  std::condition_variable wake_;  // of the writer
  std::deque<Entry> queued_;      // loop -> writer
  std::vector<Entry> done_;       // writer -> loop
  bool stopping_ = false;
  uint64_t commits_ = 0;
  // Rung by the writer when done_ stops being empty: one hop between threads per batch.
  kj::Maybe<kj::Own<kj::CrossThreadPromiseFulfiller<void>>> bell_;

  // Fulfillers in the order of the commands: they belong to the loop, the writer never touches
  // them.
  std::deque<kj::Own<kj::PromiseFulfiller<Outcome>>> waiting_;
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> drained_;
  kj::Promise<void> answering_;
  std::thread writer_;
};

}  // namespace trainfs::mds
