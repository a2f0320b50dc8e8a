#include "oss/buffer_pool.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace trainfs::oss {

BufferPool::BufferPool(Reactor& reactor)
    : shelves_{Shelf(reactor, kClasses[0].count), Shelf(reactor, kClasses[1].count),
               Shelf(reactor, kClasses[2].count)} {
  for (auto& size : kClasses) mappedBytes_ += size.bytes * size.count;
  void* mapping = mmap(nullptr, mappedBytes_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "mapping of the buffer pool");
  mapping_ = static_cast<std::byte*>(mapping);
  std::byte* next = mapping_;
  for (size_t i = 0; i < kClasses.size(); ++i)
    for (uint32_t n = 0; n < kClasses[i].count; ++n, next += kClasses[i].bytes)
      shelves_[i].free.push_back(next);
}

BufferPool::~BufferPool() {
  munmap(mapping_, mappedBytes_);
}

Task<BufferPool::Buffer> BufferPool::take(size_t bytes) {
  size_t sizeClass = 0;
  while (kClasses.at(sizeClass).bytes < bytes) ++sizeClass;
  Shelf& shelf = shelves_[sizeClass];
  co_await shelf.permits.acquire();
  Buffer buffer;
  buffer.pool_ = this;
  buffer.sizeClass_ = sizeClass;
  // The one given back last: its pages are there and perhaps still in the processor's cache.
  buffer.memory_ = {shelf.free.back(), kClasses[sizeClass].bytes};
  shelf.free.pop_back();
  co_return buffer;
}

void BufferPool::giveBack(size_t sizeClass, std::byte* memory) {
  shelves_[sizeClass].free.push_back(memory);
  shelves_[sizeClass].permits.release();
}

size_t BufferPool::inUse() const {
  size_t count = 0;
  for (size_t i = 0; i < kClasses.size(); ++i) count += kClasses[i].count - shelves_[i].free.size();
  return count;
}

}  // namespace trainfs::oss
