#include "fuse_client/ordered_access.h"

#include <vector>

namespace trainfs::client {

bool OrderedAccess::admit(bool exclusive) {
  if (exclusive_ || (exclusive && shared_ != 0)) return false;
  if (exclusive)
    exclusive_ = true;
  else
    ++shared_;
  return true;
}

OrderedAccess::Pass OrderedAccess::makePass(bool exclusive) {
  // The address is never used: a Pass is all about its end.
  return Pass(this, [self = shared_from_this(), exclusive](void*) { self->leave(exclusive); });
}

void OrderedAccess::enter(bool exclusive, Operation operation) {
  {
    std::lock_guard lock(mutex_);
    if (!waiting_.empty() || !admit(exclusive)) {
      waiting_.push_back({exclusive, std::move(operation)});
      return;
    }
  }
  operation(makePass(exclusive));
}

void OrderedAccess::leave(bool exclusive) {
  std::vector<Waiting> next;
  {
    std::lock_guard lock(mutex_);
    if (exclusive)
      exclusive_ = false;
    else
      --shared_;
    while (!waiting_.empty() && admit(waiting_.front().exclusive)) {
      next.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
  }
  for (auto& [isExclusive, operation] : next) operation(makePass(isExclusive));
}

}  // namespace trainfs::client
