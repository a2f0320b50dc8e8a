#include "oss/reactor.h"

namespace trainfs::oss {

Reactor::Reactor(uint32_t ringEntries)
    : ring_(ringEntries), waker_(ring_, [this] { runPosted(); }) {}

Reactor::~Reactor() {
  std::lock_guard lock(mutex_);  // whoever posted last is through with waker_
}

void Reactor::post(std::function<void()> call) {
  std::lock_guard lock(mutex_);
  posted_.push_back(std::move(call));
  if (posted_.size() == 1) waker_.wake();  // otherwise a wake-up is under way already
}

void Reactor::runPosted() {
  std::vector<std::function<void()>> calls;
  {
    std::lock_guard lock(mutex_);
    calls.swap(posted_);
  }
  for (auto& call : calls) call();
}

void Reactor::runReady() {
  while (!ready_.empty()) {
    resuming_.clear();
    resuming_.swap(ready_);
    for (auto coroutine : resuming_) coroutine.resume();
  }
}

void Reactor::turn(std::chrono::milliseconds timeout) {
  runReady();
  ring_.run(timeout);
  runReady();
}

void Reactor::runUntil(const std::function<bool()>& done) {
  while (!done()) turn(std::chrono::milliseconds(100));
}

}  // namespace trainfs::oss
