#include "fuse_client/mds_slots.h"

namespace trainfs::client {

namespace {
constexpr uint32_t kOrdinarySlots = kSlotsPerSession - MdsSlots::kUrgentSlots;
}

MdsSlots::MdsSlots() {
  for (uint32_t slot = kSlotsPerSession; slot-- > 0;)
    classOf(slot >= kOrdinarySlots).free.push_back(static_cast<uint16_t>(slot));
}

kj::Promise<uint16_t> MdsSlots::take(bool urgent) {
  auto& slots = classOf(urgent);
  if (!slots.free.empty()) {
    uint16_t slot = slots.free.back();
    slots.free.pop_back();
    return slot;
  }
  auto paf = kj::newPromiseAndFulfiller<uint16_t>();
  slots.waiting.push_back(kj::mv(paf.fulfiller));
  return kj::mv(paf.promise);
}

void MdsSlots::give(uint16_t slot) {
  auto& slots = classOf(slot >= kOrdinarySlots);
  while (!slots.waiting.empty()) {
    auto next = kj::mv(slots.waiting.front());
    slots.waiting.pop_front();
    if (!next->isWaiting()) continue;
    next->fulfill(kj::mv(slot));
    return;
  }
  slots.free.push_back(slot);
}

}  // namespace trainfs::client
