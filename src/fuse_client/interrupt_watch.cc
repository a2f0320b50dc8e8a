#include "fuse_client/interrupt_watch.h"

#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace trainfs::client {

namespace {
constexpr std::chrono::milliseconds kLookEvery{200};
}

bool beingKilled(int thread) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/status", thread);
  FILE* file = std::fopen(path, "re");
  if (file == nullptr) return true;  // gone already
  char line[256];
  bool killed = false;
  while (!killed && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, "SigPnd:", 7) == 0 || std::strncmp(line, "ShdPnd:", 7) == 0)
      killed = (std::strtoull(line + 7, nullptr, 16) >> (SIGKILL - 1)) & 1;
  }
  std::fclose(file);
  return killed;
}

InterruptWatch::InterruptWatch() : thread_([this] { run(); }) {}

InterruptWatch::~InterruptWatch() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void InterruptWatch::add(std::weak_ptr<Request> request) {
  std::lock_guard lock(mutex_);
  watched_.push_back(std::move(request));
  changed_.notify_all();
}

void InterruptWatch::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (watched_.empty()) {
      changed_.wait(lock);
      continue;
    }
    auto round = std::move(watched_);
    watched_.clear();
    lock.unlock();
    std::vector<std::weak_ptr<Request>> again;
    for (auto& weak : round) {
      auto request = weak.lock();
      if (!request || request->answered()) continue;
      if (beingKilled(request->caller()))
        request->error(EINTR);
      else
        again.push_back(std::move(weak));
    }
    lock.lock();
    watched_.insert(watched_.end(), again.begin(), again.end());
    changed_.wait_for(lock, kLookEvery, [&] { return stopping_; });
  }
}

}  // namespace trainfs::client
