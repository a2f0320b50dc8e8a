// Changes whose callers were killed before the answer came, and which may still happen: a server
// that is away gets them when it is back. What comes later waits until their fate is known, so that
// nobody who has seen a process end is surprised by it afterwards. Any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace trainfs::client {

class AbandonedChanges {
 public:
  void add();
  void settled();  // one of them
  // Runs `next` when there are none: now, or on the thread that settles the last. As many wait as
  // the kernel has requests under way.
  template <typename Next>
  void afterAll(Next next) {
    {
      std::lock_guard lock(mutex_);
      if (count_ != 0) {
        waiting_.push_back(std::move(next));
        return;
      }
    }
    next();
  }

 private:
  std::mutex mutex_;
  size_t count_ = 0;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace trainfs::client
