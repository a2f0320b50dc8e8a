#include "oss/session_table.h"

#include <algorithm>

namespace trainfs::oss {

void SessionTable::fence(SessionId session, uint32_t epoch) {
  std::lock_guard lock(mutex_);
  auto [at, added] = fencedEpoch_.try_emplace(session.value, epoch);
  at->second = std::max(at->second, epoch);
  if (!added) return;
  order_.push_back(session.value);
  if (order_.size() <= kFencesMax) return;
  fencedEpoch_.erase(order_.front());
  order_.pop_front();
}

void SessionTable::clear() {
  std::lock_guard lock(mutex_);
  fencedEpoch_.clear();
  order_.clear();
}

bool SessionTable::isFenced(SessionId session, uint32_t epoch) const {
  std::lock_guard lock(mutex_);
  auto at = fencedEpoch_.find(session.value);
  return at != fencedEpoch_.end() && epoch <= at->second;
}

}  // namespace trainfs::oss
