// Whether this client may rely on its caches and let the kernel rely on its own: only while no
// other is at work, and no longer than a term after it last heard so. Any thread.
#pragma once

#include <atomic>
#include <mutex>
#include <shared_mutex>

#include "fuse_client/boot_clock.h"

namespace trainfs::client {

class Coherence {
 public:
  // "For ever", bounded by what the kernel can count in jiffies.
  static constexpr double kForeverSeconds = 10.0 * 365 * 86400;

  // Held while an answer goes out that says how long the kernel may keep it. Once forbid() has
  // returned, no answer is on its way any more that was made while caching was allowed.
  class Answering {
   public:
    explicit Answering(Coherence& coherence)
        : lock_(coherence.mutex_), mayCache_(coherence.mayCache()) {}
    bool mayCache() const { return mayCache_; }
    double timeout() const { return mayCache_ ? kForeverSeconds : 0.0; }

   private:
    std::shared_lock<std::shared_mutex> lock_;
    bool mayCache_;
  };

  // Looks at the clock each time: if this process stood still, nobody else may have noticed yet
  // that the time is over.
  bool mayCache() const {
    return allowed_.load(std::memory_order_acquire) &&
           BootClock::now() < trustedUntil_.load(std::memory_order_acquire);
  }

  void trustUntil(BootClock::time_point until) {
    trustedUntil_.store(until, std::memory_order_release);
  }
  void forbid() {
    std::unique_lock lock(mutex_);
    allowed_.store(false, std::memory_order_release);
    version_.fetch_add(1);
  }
  // Allows it, unless it was forbidden again since `version` was read.
  void allow(uint64_t version) {
    std::unique_lock lock(mutex_);
    if (version_.load() == version) allowed_.store(true, std::memory_order_release);
  }
  uint64_t version() const { return version_.load(); }

 private:
  std::shared_mutex mutex_;
  std::atomic<bool> allowed_{false};
  std::atomic<BootClock::time_point> trustedUntil_{BootClock::time_point::min()};
  std::atomic<uint64_t> version_{0};
};

}  // namespace trainfs::client
