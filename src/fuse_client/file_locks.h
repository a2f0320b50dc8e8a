// Locks of files on behalf of callers: between the FUSE handlers and the MDS. Any thread; answers
// run on the MDS thread.
//
// The kernel says when a process closes a file (its record locks go, POSIX) and when an open file
// description ends (flock and OFD locks go); which of the two a record lock is it does not say. But
// every process that had the description open has closed it when it ends: what was locked through
// it and is still there then belongs to the description.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "fuse_client/held_locks.h"
#include "fuse_client/mds_client.h"

namespace trainfs::client {

class FileLocks {
 public:
  using Handle = HeldLocks::Handle;
  // Runs `next` when nothing that a killed caller has left behind is under way any more, of this
  // file or of names: who gets the lock next must not be surprised by it.
  using AfterAbandoned = std::function<void(InodeId inode, std::function<void()> next)>;

  FileLocks(MdsClient& mds, HeldLocks& held, Statistics& statistics, AfterAbandoned afterAbandoned)
      : mds_(mds),
        held_(held),
        statistics_(statistics),
        afterAbandoned_(std::move(afterAbandoned)) {}

  // One call for a lock.
  class Asking;
  // `answer` returns whether the caller got it: a lock that nobody knows of is let go of again.
  // Null: answered.
  using Taken = std::function<bool(Status)>;
  std::shared_ptr<Asking> lock(const FileLock& lock, Handle through, bool waits, Taken answer);
  void giveUp(const Asking& asking);
  // The caller is being killed: whatever comes of it is nobody's.
  void abandon(Asking& asking);
  void unlock(const FileLock& lock, Answer<Done> answer);
  void test(const FileLock& lock, Answer<std::optional<FileLock>> answer);

  // Some process has asked for a record lock, ever.
  bool hadRecordLocks() const { return hadRecordLocks_.load(std::memory_order_relaxed); }
  // A process has closed the file: `owner` is its number. `done` may run at once.
  void closed(InodeId inode, uint64_t owner, std::function<void()> done);
  // A description has ended.
  void ended(InodeId inode, Handle handle);

 private:
  struct Whose {
    HeldLocks::Owner owner;
    FileLock named;  // as the MDS knows it
  };
  void answered(Asking& asking, Status status, const Taken& answer);
  void release(const Whose& whose, Answer<Done> answer);

  MdsClient& mds_;
  HeldLocks& held_;
  Statistics& statistics_;
  const AfterAbandoned afterAbandoned_;
  std::atomic<bool> hadRecordLocks_{false};
};

class FileLocks::Asking {
 public:
  explicit Asking(const Whose& whose) : whose(whose) {}

 private:
  friend class FileLocks;
  const Whose whose;
  std::shared_ptr<LockWait> wait;
  std::atomic_flag over;  // its owner is not asking any more
};

}  // namespace trainfs::client
