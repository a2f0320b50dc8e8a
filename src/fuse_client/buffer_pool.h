// Buffers for bulk data between the kernel and the data workers, page aligned, all of one size, at
// most kBuffersMax of them. Any thread. The newest returned is handed out first: its pages are in
// the cache.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace trainfs::client {

class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  static constexpr size_t kBuffersMax = 512;
  // Of these only so many may be held by those who wait without a thread, so that there are always
  // some to receive requests into.
  static constexpr size_t kWithoutThreadMax = 384;

  using Buffer = std::shared_ptr<std::byte>;  // goes back to the pool with its last reference

  explicit BufferPool(size_t bufferBytes);
  ~BufferPool();

  size_t bufferBytes() const { return bufferBytes_; }
  // For the threads that receive requests: waits for a free one.
  Buffer take();
  // For requests that have been received: runs `use` now, or when a buffer is free, on the thread
  // that freed it.
  void whenFree(std::function<void(Buffer)> use);

 private:
  std::byte* takeLocked();
  Buffer wrap(std::byte* memory, bool withoutThread);
  void give(std::byte* memory, bool withoutThread);

  const size_t bufferBytes_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::byte*> free_;
  size_t made_ = 0, withoutThread_ = 0;
  std::deque<std::function<void(Buffer)>> waiting_;
};

}  // namespace trainfs::client
