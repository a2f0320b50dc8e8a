// A limit to how many requests may wait for servers, so that there is always room for another one.
// Who comes when all places are taken waits as long as some are given back now and then; when that
// ends, because what holds them waits for a server that is away, it is refused. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

namespace trainfs::client {

class Places : public std::enable_shared_from_this<Places> {
 public:
  // How long all may be taken, and none be given back, before others are refused.
  static constexpr std::chrono::milliseconds kPatience{1000};

  using Place = std::shared_ptr<void>;  // given back with its last reference

  Places(uint32_t most, std::chrono::milliseconds patience = kPatience)
      : most_(most), patience_(patience) {}

  Place take();  // null: refused
  // For those who cannot be refused, and are bounded otherwise: also beyond the limit.
  Place takeAlways();

 private:
  Place makePlace();
  void giveBack();

  const uint32_t most_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable givenBack_;
  uint32_t taken_ = 0;
  bool refusing_ = false;                          // one log line per outage
  std::chrono::steady_clock::time_point movedAt_;  // last one given back; or when they ran out
};

}  // namespace trainfs::client
