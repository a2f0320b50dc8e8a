#include "fuse_client/file_locks.h"

namespace trainfs::client {

std::shared_ptr<FileLocks::Asking> FileLocks::lock(const FileLock& lock, Handle through, bool waits,
                                                   Taken answer) {
  if (lock.kind == LockKind::kRecord) hadRecordLocks_.store(true, std::memory_order_relaxed);
  auto named = held_.ask(lock, through);
  if (!named) {
    answer(Errno(EIO));
    return nullptr;
  }
  if (waits) ++statistics_.lockWaits;
  auto asking = std::make_shared<Asking>(Whose{HeldLocks::ownerOf(lock), *named});
  asking->wait = mds_.lock(*named, waits, [this, asking, waits, answer](Status status) {
    if (waits) --statistics_.lockWaits;
    answered(*asking, status, answer);
  });
  return asking;
}

void FileLocks::answered(Asking& asking, Status status, const Taken& answer) {
  auto& [owner, named] = asking.whose;
  bool granted = status.ok(), kept = granted && held_.granted(owner, named);
  int error = status.errnoOrZero();
  if (error == EIO) held_.doubt(owner, named);
  // Who cannot have another mode of flock has none; at the MDS, too.
  if (error == ENOLCK && named.kind == LockKind::kWhole) release(asking.whose, [](Status) {});
  // He is done with before he hears of it and asks for more.
  abandon(asking);
  bool known = answer(granted && !kept ? Errno(EIO) : status);
  if (granted && !(kept && known)) release(asking.whose, [](Status) {});
}

void FileLocks::giveUp(const Asking& asking) {
  mds_.giveUp(asking.wait);
}

void FileLocks::abandon(Asking& asking) {
  if (!asking.over.test_and_set()) held_.asked(asking.whose.owner, asking.whose.named);
}

void FileLocks::release(const Whose& whose, Answer<Done> answer) {
  afterAbandoned_(whose.named.inode, [this, whose, answer] {
    mds_.unlock(whose.named, [this, whose, answer](Status status) {
      held_.released(whose.owner, whose.named);
      if (!status) held_.doubt(whose.owner, whose.named);
      answer(status);
    });
  });
}

void FileLocks::unlock(const FileLock& lock, Answer<Done> answer) {
  auto owner = HeldLocks::ownerOf(lock);
  bool lost = held_.lost(owner);
  auto named = lost ? held_.close(owner) : held_.named(lock);
  if (!named) return answer(Done{});
  release({owner, *named}, std::move(answer));
}

void FileLocks::test(const FileLock& lock, Answer<std::optional<FileLock>> answer) {
  if (held_.lost(HeldLocks::ownerOf(lock))) return answer(Errno(EIO));
  auto asked = lock;
  asked.owner = 0;  // nobody's name
  mds_.testLock(held_.named(lock).value_or(asked), std::move(answer));
}

void FileLocks::closed(InodeId inode, uint64_t number, std::function<void()> done) {
  HeldLocks::Owner owner{inode, LockKind::kRecord, number};
  auto named = held_.close(owner);
  if (!named) return done();
  release({owner, *named}, [done](Status) { done(); });
}

void FileLocks::ended(InodeId inode, Handle handle) {
  for (auto& owner : held_.ended(inode, handle))
    if (auto named = held_.close(owner)) release({owner, *named}, [](Status) {});
}

}  // namespace trainfs::client
