// The log of an MDT without replicas. Whatever waits while one batch is written is the next one:
// made durable in the journal, applied to the store in one transaction, then answered. Made, called
// and destroyed on one event loop; owns the one thread that writes the store.
#pragma once

#include <kj/async.h>
#include <kj/exception.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "mds/batch.h"
#include "mds/journal.h"
#include "mds/log.h"

namespace trainfs::mds {

// Commands that may wait for the writer; beyond it append() rejects with OVERLOADED and the peer
// resends.
inline constexpr size_t kLogWaitingMax = 65536;
// Their bytes as the journal takes them: in memory they are there a second time, as commands.
inline constexpr size_t kLogWaitingBytesMax = 64 * kMiB;
// Commands in one transaction: bounds how long the first of them waits for the last.
inline constexpr size_t kLogBatchMax = 1024;
// Their bytes, but for a single one: what has to fit into the log before any of it can be cut.
inline constexpr size_t kLogBatchBytesMax = 4 * kMiB;
// When the store writes into its reserve: bounds what one transaction can take of it.
inline constexpr size_t kLogReserveBatchMax = 64;

class LmdbLog final : public Log {
 public:
  // With the journal's store, all of whose commands are applied.
  explicit LmdbLog(Journal& journal);
  // Without a journal: the store's own commits are what there is of durability.
  explicit LmdbLog(Store& store);
  // What was appended is still made durable and applied; its promises are dropped unanswered.
  ~LmdbLog() override;

  // A store that is full answers ENOSPC to what would make it grow; what frees something still
  // works.
  kj::Promise<Outcome> append(Command command) override;

  // Transactions committed, for tests and metrics.
  uint64_t commits() const;

 private:
  struct Entry {
    Command command;
    std::string bytes;  // as the journal takes it
    Applied applied;
    bool refused = false;  // answered without being logged
  };
  LmdbLog(Store& store, Journal* journal);

  // Writer thread.
  void write();
  bool waitForCommands();
  void lookForRoom();
  std::vector<Entry> takeBatch();
  void logAndApply(std::vector<Entry>& batch);
  void reject(Entry& entry);
  void refuseWhatGrows(std::vector<Entry>& batch);
  bool applyWhenThereIsRoom(const std::vector<Entry*>& entries);

  // Event loop.
  kj::Promise<void> answerForever();
  void answerOne(Entry& entry);

  Store& store_;
  Journal* const journal_;
  mutable std::mutex mutex_;      // over what follows, to bell_
  std::condition_variable wake_;  // of the writer
  std::deque<Entry> queued_;      // loop -> writer
  std::vector<Entry> done_;       // writer -> loop
  bool stopping_ = false;
  uint64_t commits_ = 0;
  // Rung by the writer when done_ stops being empty: one hop between threads per batch.
  kj::Maybe<kj::Own<kj::CrossThreadPromiseFulfiller<void>>> bell_;

  // The writer's.
  uint64_t nextIndex_;
  Room room_ = Room::kPlenty;
  bool gaveUp_ = false;  // what is in the log last was not applied: nothing may follow it

  // Fulfillers in the order of the commands: they belong to the loop, the writer never touches
  // them.
  std::deque<kj::Own<kj::PromiseFulfiller<Outcome>>> waiting_;
  size_t waitingBytes_ = 0;
  kj::Promise<void> answering_;
  std::thread writer_;
};

}  // namespace trainfs::mds
