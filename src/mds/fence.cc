#include "mds/fence.h"

#include <algorithm>

#include "trainfs/logging.h"

namespace trainfs::mds {

kj::Promise<void> Fence::everywhere(SessionId session, uint32_t epoch) {
  auto fenced = kj::heapArrayBuilder<kj::Promise<void>>(osts_.all().size());
  for (auto& [index, ost] : osts_.all()) fenced.add(at(index, session, epoch));
  return kj::joinPromises(fenced.finish());
}

kj::Promise<void> Fence::at(uint32_t index, SessionId session, uint32_t epoch) {
  for (;;) {
    KJ_IF_MAYBE (control, osts_.control(index)) {
      try {
        auto request = control->fenceRequest();
        request.setSession(session.value);
        request.setEpoch(epoch);
        co_await timer_.timeoutAfter(options_.ostTerm, request.send().ignoreResult());
        co_return;
      } catch (const kj::Exception& e) {
        spdlog::warn("OST {} has not fenced session {}: {}", index, session.value,
                     e.getDescription().cStr());
      }
    }
    const Ost& ost = *osts_.find(index);
    if (!ost.active && ost.leaseUntil <= timer_.now()) co_return;
    auto again = std::min(ost.leaseUntil, timer_.now() + options_.retryDelay);
    co_await osts_.changed().exclusiveJoin(timer_.atTime(again));
  }
}

}  // namespace trainfs::mds
