// For what other threads bring about without telling.
#pragma once

#include <chrono>
#include <thread>

namespace trainfs::test {

// Looks again and again until it is so; false: it was not within the bound.
template <typename Condition>
bool eventually(Condition condition, std::chrono::seconds bound) {
  auto end = std::chrono::steady_clock::now() + bound;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace trainfs::test
