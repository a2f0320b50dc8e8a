#include "oss/range_lock.h"

namespace trainfs::oss {

bool RangeLocks::conflict(const Entry& a, const Entry& b) {
  if (a.range.first >= b.range.end || b.range.first >= a.range.end) return false;
  if (a.mode == Mode::kChange || b.mode == Mode::kChange) return true;
  return a.mode == Mode::kSync && b.mode == Mode::kSync;
}

bool RangeLocks::mayGo(Place place) {
  for (auto earlier = entries_.begin(); earlier != place; ++earlier)
    if (conflict(*earlier, *place)) return false;
  return true;
}

RangeLocks::Place RangeLocks::enqueue(Mode mode, BlockRange range) {
  auto place = entries_.insert(entries_.end(), Entry{mode, range});
  place->granted = mayGo(place);
  return place;
}

void RangeLocks::release(Place place) {
  auto next = entries_.erase(place);
  for (; next != entries_.end(); ++next) {
    if (next->granted || !mayGo(next)) continue;
    next->granted = true;
    reactor_.resumeSoon(next->waiting);
  }
}

}  // namespace trainfs::oss
