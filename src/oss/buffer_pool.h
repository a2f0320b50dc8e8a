// The memory of one data worker's payloads: a fixed number of buffers in three sizes, mapped once,
// page aligned, touched only when used. When a size has run out, takers wait in order; a connection
// that waits here is not read from, so its client is slowed down by TCP.
// Nobody may wait for a buffer while holding what the owner of another buffer waits for.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "oss/reactor.h"
#include "trainfs/bulk.h"

namespace trainfs::oss {

// A read may need the whole block around each end of each extent, to verify it.
inline constexpr size_t kBufferBytesMax = kBulkPayloadBytesMax + kBulkExtentsMax * 2 * kBlockBytes;

class BufferPool {
 public:
  explicit BufferPool(Reactor& reactor);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;

  // Goes back to the pool when destroyed.
  class Buffer {
   public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept { *this = std::move(other); }
    Buffer& operator=(Buffer&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(sizeClass_, other.sizeClass_);
      std::swap(memory_, other.memory_);
      return *this;
    }
    ~Buffer() {
      if (pool_) pool_->giveBack(sizeClass_, memory_.data());
    }
    // At least the bytes that were asked for.
    std::span<std::byte> memory() const { return memory_; }

   private:
    friend class BufferPool;
    BufferPool* pool_ = nullptr;
    size_t sizeClass_ = 0;
    std::span<std::byte> memory_;
  };

  Task<Buffer> take(size_t bytes);  // bytes <= kBufferBytesMax

  size_t inUse() const;

 private:
  struct SizeClass {
    size_t bytes;
    uint32_t count;
  };
  // 256 x 128 KiB, 48 x 1152 KiB (1 MiB at any offset, widened to blocks), 6 x 16 MiB: 182 MiB of
  // address space for each worker. The big ones are rare: many objects or more than 1 MiB at once.
  static constexpr std::array<SizeClass, 3> kClasses{
      {{2 * kBlockBytes, 256}, {kMiB + 2 * kBlockBytes, 48}, {kBufferBytesMax, 6}}};

  struct Shelf {
    explicit Shelf(Reactor& reactor, uint32_t count) : permits(reactor, count) {}
    Permits permits;
    std::vector<std::byte*> free;
  };
  void giveBack(size_t sizeClass, std::byte* memory);

  std::byte* mapping_ = nullptr;
  size_t mappedBytes_ = 0;
  std::array<Shelf, kClasses.size()> shelves_;
};

}  // namespace trainfs::oss
