#include "fuse_client/ordered_access.h"

#include <algorithm>
#include <utility>

namespace trainfs::client {

namespace {

// What this thread has let go and not run yet, while it runs something of it. An operation that
// ends at once lets the next one go: in a loop, for a long line would nest too deeply.
thread_local std::deque<std::function<void()>>* letGo = nullptr;

}  // namespace

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

void OrderedAccess::enter(bool exclusive, Operation operation, const void* owner) {
  {
    std::lock_guard lock(mutex_);
    if (!waiting_.empty() || !admit(exclusive)) {
      waiting_.push_back({exclusive, owner, std::move(operation)});
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
    next = takeNext();
  }
  run(std::move(next));
}

void OrderedAccess::withdraw(const void* owner) {
  Operation withdrawn;  // ends without the lock: with it goes what it holds
  std::vector<Waiting> next;
  {
    std::lock_guard lock(mutex_);
    auto found = std::ranges::find(waiting_, owner, &Waiting::owner);
    if (found == waiting_.end()) return;
    withdrawn = std::move(found->operation);
    waiting_.erase(found);
    next = takeNext();
  }
  run(std::move(next));
}

std::vector<OrderedAccess::Waiting> OrderedAccess::takeNext() {
  std::vector<Waiting> next;
  while (!waiting_.empty() && admit(waiting_.front().exclusive)) {
    next.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return next;
}

void OrderedAccess::run(std::vector<Waiting> next) {
  std::deque<std::function<void()>> mine;
  auto& line = letGo != nullptr ? *letGo : mine;
  for (auto& [exclusive, owner, operation] : next)
    line.push_back([pass = makePass(exclusive), operation = std::move(operation)]() mutable {
      operation(std::move(pass));
    });
  if (letGo != nullptr) return;
  letGo = &mine;
  while (!mine.empty()) {
    auto run = std::move(mine.front());
    mine.pop_front();
    run();
  }
  letGo = nullptr;
}

}  // namespace trainfs::client
