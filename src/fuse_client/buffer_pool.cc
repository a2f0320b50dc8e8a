#include "fuse_client/buffer_pool.h"

#include <sys/mman.h>

#include <new>

namespace trainfs::client {

BufferPool::BufferPool(size_t bufferBytes) : bufferBytes_(bufferBytes) {
  free_.reserve(kBuffersMax);
}

BufferPool::~BufferPool() {
  for (auto* memory : free_) munmap(memory, bufferBytes_);
}

std::byte* BufferPool::takeLocked() {
  if (!free_.empty()) {
    auto* memory = free_.back();
    free_.pop_back();
    return memory;
  }
  if (made_ == kBuffersMax) return nullptr;
  void* memory =
      mmap(nullptr, bufferBytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ++made_;
  return static_cast<std::byte*>(memory);
}

BufferPool::Buffer BufferPool::wrap(std::byte* memory, bool withoutThread) {
  return Buffer(memory, [pool = shared_from_this(), withoutThread](std::byte* returned) {
    pool->give(returned, withoutThread);
  });
}

BufferPool::Buffer BufferPool::take() {
  std::unique_lock lock(mutex_);
  std::byte* memory = nullptr;
  returned_.wait(lock, [&] { return (memory = takeLocked()) != nullptr; });
  lock.unlock();
  return wrap(memory, false);
}

void BufferPool::whenFree(std::function<void(Buffer)> use) {
  std::byte* memory = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (waiting_.empty() && withoutThread_ < kWithoutThreadMax) memory = takeLocked();
    if (memory == nullptr) {
      waiting_.push_back(std::move(use));
      return;
    }
    ++withoutThread_;
  }
  use(wrap(memory, true));
}

void BufferPool::give(std::byte* memory, bool withoutThread) {
  std::function<void(Buffer)> next;
  {
    std::lock_guard lock(mutex_);
    if (withoutThread) --withoutThread_;
    if (!waiting_.empty() && withoutThread_ < kWithoutThreadMax) {
      next = std::move(waiting_.front());
      waiting_.pop_front();
      ++withoutThread_;
    } else {
      free_.push_back(memory);
    }
  }
  if (next)
    next(wrap(memory, true));
  else
    returned_.notify_one();
}

}  // namespace trainfs::client
