// A condition that coroutines of one event loop wait for: every wait() ends at the next notify().
// The waiter re-checks what it waited for; a notify() without waiters is forgotten.
#pragma once

#include <kj/async.h>

#include <utility>
#include <vector>

namespace trainfs::mds {

class Condition {
 public:
  kj::Promise<void> wait() {
    if (waiting_.size() >= pruneAt_) prune();
    auto pair = kj::newPromiseAndFulfiller<void>();
    waiting_.push_back(kj::mv(pair.fulfiller));
    return kj::mv(pair.promise);
  }
  void notify() {
    for (auto& waiter : std::exchange(waiting_, {})) waiter->fulfill();
  }

 private:
  // Waits that ended by a timeout left their fulfillers here.
  void prune() {
    std::erase_if(waiting_, [](auto& waiter) { return !waiter->isWaiting(); });
    pruneAt_ = 2 * waiting_.size() + 16;
  }

  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting_;
  size_t pruneAt_ = 16;
};

}  // namespace trainfs::mds
