// Seeded randomness for tests. INFO the seed: TRAINFS_SEED=N replays a failure.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace trainfs::test {

inline uint64_t testSeed() {
  const char* given = std::getenv("TRAINFS_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // Both bounds included.
  uint64_t between(uint64_t least, uint64_t most) {
    return std::uniform_int_distribution<uint64_t>(least, most)(engine_);
  }
  bool chance(unsigned percent) { return between(1, 100) <= percent; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace trainfs::test
