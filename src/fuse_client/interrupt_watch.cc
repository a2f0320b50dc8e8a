#include "fuse_client/interrupt_watch.h"

#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace trainfs::client {

namespace {
constexpr std::chrono::milliseconds kLookEvery{200};
constexpr std::chrono::milliseconds kPause{5};  // however many interruptions there are
}  // namespace

bool beingKilled(int thread) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/status", thread);
  FILE* file = std::fopen(path, "re");
  if (file == nullptr) return false;  // gone: nobody waits there any more
  char line[256];
  bool killed = false;
  while (!killed && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, "SigPnd:", 7) == 0 || std::strncmp(line, "ShdPnd:", 7) == 0)
      killed = (std::strtoull(line + 7, nullptr, 16) >> (SIGKILL - 1)) & 1;
  }
  std::fclose(file);
  return killed;
}

InterruptWatch::InterruptWatch(InFlight& inFlight)
    : inFlight_(inFlight), thread_([this] { run(); }) {}

InterruptWatch::~InterruptWatch() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void InterruptWatch::interrupted() {
  std::lock_guard lock(mutex_);
  interrupted_ = true;
  changed_.notify_all();
}

void InterruptWatch::run() {
  std::vector<std::weak_ptr<Request>> watched;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, kLookEvery, [&] { return stopping_ || interrupted_; });
    bool now = std::exchange(interrupted_, false);
    lock.unlock();
    if (now) watched = inFlight_.all();
    for (auto& weak : watched)
      if (auto request = weak.lock(); request && beingKilled(request->caller())) request->giveUp();
    watched = inFlight_.all();
    lock.lock();
    changed_.wait_for(lock, kPause, [&] { return stopping_; });
  }
}

}  // namespace trainfs::client
