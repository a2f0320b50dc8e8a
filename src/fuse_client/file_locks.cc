#include "fuse_client/file_locks.h"

namespace trainfs::client {

namespace {

FileLock allOf(const HeldLocks::Owner& owner) {
  return {.inode = owner.inode, .kind = owner.kind, .owner = owner.number, .range = {}};
}

}  // namespace

std::shared_ptr<LockWait> FileLocks::lock(const FileLock& lock, Handle through, bool waits,
                                          Taken answer) {
  if (lock.kind == LockKind::kRecord) hadRecordLocks_.store(true, std::memory_order_relaxed);
  if (held_.lost(HeldLocks::ownerOf(lock))) {
    answer(Errno(EIO));
    return nullptr;
  }
  if (waits) ++statistics_.lockWaits;
  return mds_.lock(lock, waits, [this, lock, through, waits, answer](Status status) {
    if (waits) --statistics_.lockWaits;
    if (status) held_.granted(lock, through);
    bool known = answer(status);
    if (status ? !known : mayHaveChanged(lock, status.error().code())) unlock(lock, [](Status) {});
  });
}

// Whether the owner may have another lock at the MDS, after one that failed, than is known here.
// Who cannot have another mode of flock has lost the one that he had, unless the MDS has just
// started.
bool FileLocks::mayHaveChanged(const FileLock& lock, int error) {
  if (error == EAGAIN || error == EINTR)
    return lock.kind == LockKind::kWhole && held_.has(HeldLocks::ownerOf(lock));
  return error != EDEADLK && error != ENOLCK && error != EINVAL && error != EOPNOTSUPP;
}

void FileLocks::unlock(const FileLock& lock, Answer<Done> answer) {
  if (held_.lost(HeldLocks::ownerOf(lock))) {
    held_.forget(HeldLocks::ownerOf(lock));
    return answer(Done{});
  }
  mds_.unlock(lock, [this, lock, answer](Status status) {
    held_.released(lock);
    answer(status);
  });
}

void FileLocks::test(const FileLock& lock, Answer<std::optional<FileLock>> answer) {
  if (held_.lost(HeldLocks::ownerOf(lock))) return answer(Errno(EIO));
  mds_.testLock(lock, std::move(answer));
}

void FileLocks::closed(InodeId inode, uint64_t owner, std::function<void()> done) {
  HeldLocks::Owner who{inode, LockKind::kRecord, owner};
  if (!held_.has(who)) return done();
  unlock(allOf(who), [done](Status) { done(); });
}

// Nobody waits for the answer, so a new description may be given the same number meanwhile: what it
// locks comes later, here as at the MDS.
void FileLocks::ended(InodeId inode, Handle handle) {
  for (auto& owner : held_.through(inode, handle)) {
    held_.forget(owner);
    mds_.unlock(allOf(owner), [](Status) {});
  }
}

}  // namespace trainfs::client
