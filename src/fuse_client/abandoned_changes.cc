#include "fuse_client/abandoned_changes.h"

namespace trainfs::client {

void AbandonedChanges::add() {
  std::lock_guard lock(mutex_);
  ++count_;
}

void AbandonedChanges::settled() {
  std::vector<std::function<void()>> next;
  {
    std::lock_guard lock(mutex_);
    if (--count_ == 0) next.swap(waiting_);
  }
  for (auto& run : next) run();
}

}  // namespace trainfs::client
