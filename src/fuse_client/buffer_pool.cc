#include "fuse_client/buffer_pool.h"

#include <sys/mman.h>

#include <new>

namespace trainfs::client {

BufferPool::BufferPool(size_t bufferBytes) : bufferBytes_(bufferBytes) {
  unused_.reserve(kUnusedMax);
}

BufferPool::~BufferPool() {
  for (auto* memory : unused_) munmap(memory, bufferBytes_);
}

std::byte* BufferPool::unused() {
  std::lock_guard lock(mutex_);
  if (unused_.empty()) return nullptr;
  auto* memory = unused_.back();
  unused_.pop_back();
  return memory;
}

std::byte* BufferPool::map() {
  void* memory =
      mmap(nullptr, bufferBytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}

BufferPool::Buffer BufferPool::take() {
  auto* memory = unused();
  if (memory == nullptr) memory = map();
  return Buffer(memory, [pool = shared_from_this()](std::byte* returned) { pool->give(returned); });
}

void BufferPool::give(std::byte* memory) {
  {
    std::lock_guard lock(mutex_);
    if (unused_.size() < kUnusedMax) return unused_.push_back(memory);
  }
  munmap(memory, bufferBytes_);
}

}  // namespace trainfs::client
