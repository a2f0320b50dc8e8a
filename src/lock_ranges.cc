#include <algorithm>

#include "trainfs/file_lock.h"

namespace trainfs {

void LockRanges::add(uint64_t first, Rest rest) {
  locks_.emplace(first, rest);
  exclusives_ += rest.mode == LockMode::kExclusive;
}

LockRanges::Locks::iterator LockRanges::remove(Locks::iterator lock) {
  exclusives_ -= lock->second.mode == LockMode::kExclusive;
  return locks_.erase(lock);
}

void LockRanges::unlock(LockRange range) {
  auto next = locks_.upper_bound(range.first);
  if (next != locks_.begin()) {
    auto before = std::prev(next);
    if (before->second.last >= range.first) {
      // Starts at or before the range and reaches into it, maybe beyond.
      auto [first, rest] = *before;
      if (first == range.first)
        remove(before);
      else
        before->second.last = range.first - 1;
      if (rest.last > range.last) add(range.last + 1, rest);
    }
  }
  while (next != locks_.end() && next->first <= range.last) {
    auto rest = next->second;
    next = remove(next);
    if (rest.last > range.last) add(range.last + 1, rest);
  }
}

void LockRanges::lock(LockRange range, LockMode mode) {
  unlock(range);
  auto next = locks_.upper_bound(range.first);
  if (next != locks_.end() && next->second.mode == mode && next->first == range.last + 1) {
    range.last = next->second.last;
    next = remove(next);
  }
  if (next != locks_.begin()) {
    auto before = std::prev(next);
    if (before->second.mode == mode && before->second.last + 1 == range.first) {
      before->second.last = range.last;
      return;
    }
  }
  add(range.first, {range.last, mode});
}

std::optional<LockRanges::Lock> LockRanges::conflict(LockRange range, LockMode mode) const {
  auto at = locks_.upper_bound(range.first);
  if (at != locks_.begin() && std::prev(at)->second.last >= range.first) --at;
  for (; at != locks_.end() && at->first <= range.last; ++at)
    if (mode == LockMode::kExclusive || at->second.mode == LockMode::kExclusive)
      return Lock{{at->first, at->second.last}, at->second.mode};
  return std::nullopt;
}

// Neighbours of one mode are one lock, so it is in one.
bool LockRanges::has(LockRange range, LockMode mode) const {
  auto at = locks_.upper_bound(range.first);
  if (at == locks_.begin()) return false;
  --at;
  return at->second.mode == mode && at->second.last >= range.last;
}

std::vector<LockRanges::Lock> LockRanges::all() const {
  std::vector<Lock> all;
  all.reserve(locks_.size());
  for (auto& [first, rest] : locks_) all.push_back({{first, rest.last}, rest.mode});
  return all;
}

}  // namespace trainfs
