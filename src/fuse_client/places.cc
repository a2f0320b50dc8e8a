#include "fuse_client/places.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace trainfs::client {

Places::Place Places::makePlace() {
  // The address is never used: a Place is all about its end.
  return Place(this, [self = shared_from_this()](void*) { self->giveBack(); });
}

Places::Place Places::take() {
  std::unique_lock lock(mutex_);
  while (taken_ >= most_) {
    auto refuseAt = movedAt_ + patience_;
    if (std::chrono::steady_clock::now() >= refuseAt) {
      if (!std::exchange(refusing_, true))
        spdlog::warn("{} reads and writes wait for servers and none goes on: others are refused",
                     taken_);
      return nullptr;
    }
    givenBack_.wait_until(lock, refuseAt);
  }
  if (++taken_ == most_) movedAt_ = std::chrono::steady_clock::now();
  lock.unlock();
  return makePlace();
}

Places::Place Places::takeAlways() {
  {
    std::lock_guard lock(mutex_);
    if (++taken_ == most_) movedAt_ = std::chrono::steady_clock::now();
  }
  return makePlace();
}

void Places::giveBack() {
  {
    std::lock_guard lock(mutex_);
    if (taken_-- >= most_) movedAt_ = std::chrono::steady_clock::now();
    refusing_ = false;
  }
  givenBack_.notify_one();
}

}  // namespace trainfs::client
