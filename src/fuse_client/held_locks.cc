#include "fuse_client/held_locks.h"

namespace trainfs::client {

void HeldLocks::granted(const FileLock& lock, Handle through) {
  std::lock_guard guard(mutex_);
  auto& held = held_[ownerOf(lock)];
  auto before = held.ranges.size();
  held.ranges.lock(lock.range, lock.mode);
  held.process = lock.process;
  held.handles.insert(through);
  recount(before, held.ranges.size());
}

void HeldLocks::released(const FileLock& lock) {
  std::lock_guard guard(mutex_);
  auto found = held_.find(ownerOf(lock));
  if (found == held_.end()) return;
  auto& ranges = found->second.ranges;
  auto before = ranges.size();
  ranges.unlock(lock.range);
  recount(before, ranges.size());
  if (ranges.empty()) held_.erase(found);
}

void HeldLocks::forget(const Owner& owner) {
  std::lock_guard guard(mutex_);
  auto found = held_.find(owner);
  if (found == held_.end()) return;
  recount(found->second.ranges.size(), 0);
  held_.erase(found);
}

bool HeldLocks::has(const Owner& owner) {
  std::lock_guard guard(mutex_);
  return held_.contains(owner);
}

bool HeldLocks::lost(const Owner& owner) {
  std::lock_guard guard(mutex_);
  auto found = held_.find(owner);
  return found != held_.end() && found->second.lost;
}

std::vector<HeldLocks::Owner> HeldLocks::through(InodeId inode, Handle handle) {
  std::lock_guard guard(mutex_);
  std::vector<Owner> owners;
  for (auto at = held_.lower_bound({inode, LockKind::kRecord, 0}); at != held_.end(); ++at) {
    if (at->first.inode != inode) break;
    if (at->second.handles.contains(handle)) owners.push_back(at->first);
  }
  return owners;
}

std::vector<FileLock> HeldLocks::all() {
  std::lock_guard guard(mutex_);
  std::vector<FileLock> all;
  for (auto& [owner, held] : held_)
    for (auto& lock : held.ranges.all())
      all.push_back({owner.inode, owner.kind, owner.number, lock.range, lock.mode, held.process});
  return all;
}

std::set<InodeId> HeldLocks::lose() {
  std::lock_guard guard(mutex_);
  std::set<InodeId> inodes;
  for (auto& [owner, held] : held_) {
    if (!held.ranges.empty()) inodes.insert(owner.inode);
    held.ranges = {};
    held.lost = true;
  }
  count_ = 0;
  return inodes;
}

}  // namespace trainfs::client
