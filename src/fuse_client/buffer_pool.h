// Buffers for bulk data between the kernel and the data workers, page aligned, all of one size. How
// many there are at a time is bounded by those who take them: a few threads that receive, and the
// places for transfers (places.h). Any thread. The newest returned is handed out first: its pages
// are in the cache.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace trainfs::client {

class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  static constexpr size_t kUnusedMax = 512;  // more are unmapped

  using Buffer = std::shared_ptr<std::byte>;  // goes back to the pool with its last reference

  explicit BufferPool(size_t bufferBytes);
  ~BufferPool();

  size_t bufferBytes() const { return bufferBytes_; }
  Buffer take();  // throws std::bad_alloc

 private:
  std::byte* unused();
  std::byte* map();
  void give(std::byte* memory);

  const size_t bufferBytes_;
  std::mutex mutex_;
  std::vector<std::byte*> unused_;
};

}  // namespace trainfs::client
