#include "fuse_client/held_locks.h"

namespace trainfs::client {

namespace {

FileLock under(FileLock lock, uint64_t name) {
  lock.owner = name;
  return lock;
}

FileLock allOf(const HeldLocks::Owner& owner, uint64_t name) {
  return {.inode = owner.inode, .kind = owner.kind, .owner = name, .range = {}};
}

}  // namespace

// ---- asking ----

std::optional<FileLock> HeldLocks::ask(const FileLock& lock, Handle through) {
  std::lock_guard guard(mutex_);
  auto owner = ownerOf(lock);
  auto [held, isNew] = held_.try_emplace(owner);
  if (held->second.lost) return std::nullopt;
  auto& name = nameOf(owner);
  if (isNew && name.files++ == 0) name.name = ++lastName_;
  // The MDS takes the old mode of a flock away before it gives another.
  auto& ranges = held->second.ranges;
  if (lock.kind == LockKind::kWhole && !ranges.has(lock.range, lock.mode)) ranges = {};
  held->second.handles.insert(through);
  ++held->second.asking;
  return under(lock, name.name);
}

void HeldLocks::asked(const Owner& owner, const FileLock& named) {
  std::lock_guard guard(mutex_);
  auto held = find(owner, named.owner);
  if (held == held_.end()) return;
  --held->second.asking;
  forgetIfIdle(held);
}

bool HeldLocks::granted(const Owner& owner, const FileLock& named) {
  std::lock_guard guard(mutex_);
  auto held = find(owner, named.owner);
  if (held == held_.end() || held->second.lost) return false;
  held->second.ranges.lock(named.range, named.mode);
  held->second.process = named.process;
  return true;
}

// ---- letting go ----

std::optional<FileLock> HeldLocks::named(const FileLock& lock) {
  std::lock_guard guard(mutex_);
  auto owner = ownerOf(lock);
  if (!held_.contains(owner)) return std::nullopt;
  return under(lock, nameOf(owner).name);
}

void HeldLocks::released(const Owner& owner, const FileLock& named) {
  std::lock_guard guard(mutex_);
  auto held = find(owner, named.owner);
  if (held == held_.end()) return;
  held->second.ranges.unlock(named.range);
  forgetIfIdle(held);
}

std::optional<FileLock> HeldLocks::close(const Owner& owner) {
  std::lock_guard guard(mutex_);
  auto held = held_.find(owner);
  if (held == held_.end()) return std::nullopt;
  std::optional<FileLock> told;
  if (!held->second.ranges.empty()) told = allOf(owner, nameOf(owner).name);
  held->second.ranges = {};
  held->second.lost = false;
  forgetIfIdle(held);
  return told;
}

void HeldLocks::doubt(const Owner& owner, const FileLock& named) {
  std::lock_guard guard(mutex_);
  auto held = find(owner, named.owner);
  if (held != held_.end() && !held->second.ranges.empty()) held->second.lost = true;
}

// ---- questions, and all at once ----

bool HeldLocks::has(const Owner& owner) {
  std::lock_guard guard(mutex_);
  auto held = held_.find(owner);
  return held != held_.end() && !held->second.ranges.empty();
}

bool HeldLocks::lost(const Owner& owner) {
  std::lock_guard guard(mutex_);
  auto held = held_.find(owner);
  return held != held_.end() && held->second.lost;
}

std::vector<HeldLocks::Owner> HeldLocks::ended(InodeId inode, Handle handle) {
  std::lock_guard guard(mutex_);
  std::vector<Owner> owners;
  for (auto at = held_.lower_bound({inode, LockKind::kRecord, 0}); at != held_.end(); ++at) {
    if (at->first.inode != inode) break;
    auto& handles = at->second.handles;
    if (handles.erase(handle) != 0 && handles.empty()) owners.push_back(at->first);
  }
  return owners;
}

std::vector<FileLock> HeldLocks::all() {
  std::lock_guard guard(mutex_);
  std::vector<FileLock> all;
  for (auto& [owner, held] : held_)
    for (auto& lock : held.ranges.all())
      all.push_back(
          {owner.inode, owner.kind, nameOf(owner).name, lock.range, lock.mode, held.process});
  return all;
}

std::set<InodeId> HeldLocks::lose() {
  std::lock_guard guard(mutex_);
  std::set<InodeId> inodes;
  for (auto& [owner, held] : held_) {
    if (held.ranges.empty()) continue;
    inodes.insert(owner.inode);
    held.ranges = {};
    held.lost = true;
  }
  return inodes;
}

// End: whoever had that name is gone.
HeldLocks::Map::iterator HeldLocks::find(const Owner& owner, uint64_t name) {
  auto held = held_.find(owner);
  return held != held_.end() && nameOf(owner).name == name ? held : held_.end();
}

void HeldLocks::forget(Map::iterator held) {
  auto name = names_.find({held->first.kind, held->first.number});
  if (--name->second.files == 0) names_.erase(name);
  held_.erase(held);
}

void HeldLocks::forgetIfIdle(Map::iterator held) {
  if (held->second.ranges.empty() && held->second.asking == 0 && !held->second.lost) forget(held);
}

}  // namespace trainfs::client
