// Figures that a data path keeps at the price of a relaxed addition, and any thread reads: each is
// right, together they are not of one moment. No locks.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace trainfs {

class Counter {
 public:
  void add(uint64_t more = 1) { value_.fetch_add(more, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// Of something that goes up and down; one thread sets it.
class Gauge {
 public:
  void set(uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// How many durations there were up to 16 µs, 64 µs, 256 µs, ... 4.3 s, and longer ones.
class LatencyHistogram {
 public:
  static constexpr size_t kBounds = 10;
  static constexpr std::chrono::microseconds bound(size_t i) {
    return std::chrono::microseconds(uint64_t{16} << (2 * i));
  }

  void add(std::chrono::nanoseconds duration) {
    size_t bucket = 0;
    while (bucket < kBounds && duration > bound(bucket)) ++bucket;
    buckets_[bucket].add();
    nanoseconds_.add(static_cast<uint64_t>(duration.count()));
  }

  uint64_t bucket(size_t i) const { return buckets_[i].value(); }  // kBounds: the longer ones
  std::chrono::nanoseconds sum() const { return std::chrono::nanoseconds(nanoseconds_.value()); }

 private:
  std::array<Counter, kBounds + 1> buckets_;
  Counter nanoseconds_;
};

}  // namespace trainfs
