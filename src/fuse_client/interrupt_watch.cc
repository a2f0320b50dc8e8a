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

CallerState callerState(int thread) {
  CallerState state;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/status", thread);
  FILE* file = std::fopen(path, "re");
  if (file == nullptr) return state;  // gone: nobody waits there any more
  char line[256];
  while (!state.killed && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, "State:\t", 7) == 0) state.letter = line[7];
    if (std::strncmp(line, "SigPnd:", 7) == 0 || std::strncmp(line, "ShdPnd:", 7) == 0)
      state.killed = (std::strtoull(line + 7, nullptr, 16) >> (SIGKILL - 1)) & 1;
  }
  std::fclose(file);
  return state;
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
      if (auto request = weak.lock()) look(*request, now);
    watched = inFlight_.all();
    lock.lock();
    changed_.wait_for(lock, kPause, [&] { return stopping_; });
  }
}

// Waiting for its answer, a caller sleeps ('S') until a signal hits it, and from then on cannot be
// woken by another ('D'). In between it runs.
void InterruptWatch::look(Request& request, bool told) {
  auto& seen = request.seen();
  if (told) seen.asleep = false;
  if (seen.asleep) return;  // the kernel would have told
  auto caller = callerState(request.caller());
  if (request.endsAtSignal() && !seen.signal) {
    seen.asleep = caller.letter == 'S';
    if (caller.letter == 'D' || caller.killed) {
      seen.signal = true;
      request.signal();
    }
  }
  if (caller.killed) request.giveUp();
}

}  // namespace trainfs::client
