// Whether this client may rely on its caches and let the kernel rely on its own: only while it is
// alone. Any thread.
#pragma once

#include <atomic>
#include <mutex>
#include <shared_mutex>

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

  bool mayCache() const { return mayCache_.load(std::memory_order_acquire); }

  void forbid() {
    std::unique_lock lock(mutex_);
    mayCache_.store(false, std::memory_order_release);
    version_.fetch_add(1);
  }
  // Allows it, unless it was forbidden again since `version` was read.
  void allow(uint64_t version) {
    std::unique_lock lock(mutex_);
    if (version_.load() == version) mayCache_.store(true, std::memory_order_release);
  }
  uint64_t version() const { return version_.load(); }

 private:
  std::shared_mutex mutex_;
  std::atomic<bool> mayCache_{false};
  std::atomic<uint64_t> version_{0};
};

}  // namespace trainfs::client
