// Places: others wait while some come free, and are refused when none do.
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <thread>
#include <vector>

#include "fuse_client/places.h"

using namespace trainfs::client;
using namespace std::chrono_literals;

TEST_CASE("places: the last one waits for one that is given back", "[client]") {
  auto places = std::make_shared<Places>(2, 60s);
  auto first = places->take(), second = places->take();
  std::thread other([&] { first.reset(); });
  auto third = places->take();  // would be refused after a minute only
  other.join();
  CHECK(third != nullptr);
}

TEST_CASE("places: without one given back for a while, others are refused at once", "[client]") {
  auto places = std::make_shared<Places>(2, 50ms);
  auto begun = std::chrono::steady_clock::now();
  auto first = places->take(), second = places->take();
  CHECK(places->take() == nullptr);
  CHECK(std::chrono::steady_clock::now() - begun >= 50ms);  // however long ago the last one came
  auto refusedAt = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) CHECK(places->take() == nullptr);
  CHECK(std::chrono::steady_clock::now() - refusedAt < 10s);  // 50 s if each had waited
  first.reset();
  CHECK(places->take() != nullptr);
}

TEST_CASE("places: those who cannot be refused count", "[client]") {
  auto places = std::make_shared<Places>(1, 0ms);
  auto ordinary = places->take(), beyond = places->takeAlways();
  REQUIRE(beyond != nullptr);
  ordinary.reset();
  CHECK(places->take() == nullptr);
  beyond.reset();
  CHECK(places->take() != nullptr);
}

TEST_CASE("places: many threads never hold more than there are", "[client]") {
  auto places = std::make_shared<Places>(3);
  std::atomic<int> held{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        auto place = places->take();
        if (!place || ++held > 3) ++wrong;
        --held;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}
