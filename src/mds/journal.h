// What makes a metadata target durable: the log holds every command before it is applied, the store
// is an index of them that commits without waiting for the disk, and a checkpoint every few seconds
// says from where to apply the log again. After any stop but an orderly one the store goes back to
// the last checkpoint: a killed server and a power cut are the same case. docs/format-mdt.md.
// Made and destroyed on one thread; append() belongs to the log's writer; owns the thread that
// makes checkpoints.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "mds/checkpoint_file.h"
#include "mds/lmdb_store.h"
#include "mds/segment_log.h"

namespace trainfs::mds {

struct JournalOptions {
  LmdbOptions store;
  SegmentLogOptions log;
  // A checkpoint at the latest so long after a change: bounds what a restart has to apply again.
  std::chrono::milliseconds checkpointInterval{5000};
  // Or when the store has grown by this much: pages that were given up since the last checkpoint
  // are not used again before the next.
  uint64_t growthBytesMax = 128 * kMiB;
};

class Journal {
 public:
  // `directory` is an MDT's store, made by mkfs. Recovers it. Throws kj::Exception that names what
  // is wrong and where: damaged, in use, of a newer format, no room.
  static std::unique_ptr<Journal> open(const std::string& directory, const JournalOptions& options);
  // In order: nothing has to be recovered afterwards. The log's writer must be gone.
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  LmdbStore& store() { return *store_; }
  // Commands that open() found in the log and not in the store.
  uint64_t recovered() const { return recovered_; }

  // Durable when it returns; then they may be applied. Throws kj::Exception when the disk refuses:
  // give up, what is in the log is unknown.
  void append(uint64_t firstIndex, const std::vector<std::string_view>& commands);

  // Any thread. Throws kj::Exception when the disk refuses: give up.
  void checkpoint();

 private:
  Journal(std::string directory, const JournalOptions& options);
  void startFresh();
  void recover(const Checkpoint& from);
  void saveCheckpoint(bool clean);
  bool changed();
  void checkpointForever();
  void askForCheckpoint();

  const std::string directory_;
  const JournalOptions options_;
  std::unique_ptr<LmdbStore> store_;
  std::unique_ptr<SegmentLog> log_;
  uint64_t recovered_ = 0;
  uint64_t lastAppended_ = 0;  // index in the log, or about to be in it. The log's writer's

  std::mutex checkpointing_;  // over what follows, to lastIndex_
  CheckpointFile file_;
  std::unique_ptr<Pin> pin_;  // of the last checkpoint
  uint64_t lastIndex_ = 0;    // in it

  std::mutex mutex_;  // over what follows
  std::condition_variable wake_;
  bool stopping_ = false, asked_ = false;
  uint64_t bytesAtCheckpoint_ = 0;
  std::thread thread_;
};

}  // namespace trainfs::mds
