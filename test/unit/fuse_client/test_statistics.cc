#include <catch2/catch_test_macros.hpp>

#include "fuse_client/statistics.h"

using namespace trainfs::client;
using namespace std::chrono_literals;

TEST_CASE("a timer counts in buckets of powers of two") {
  Timer timer;
  timer.add(500ns, false);
  timer.add(1us, false);
  timer.add(3us, true);
  timer.add(24h, false);
  timer.add(-1us, false);  // a clock that was set back
  CHECK(timer.count == 5);
  CHECK(timer.errors == 1);
  CHECK(timer.buckets[0] == 2);
  CHECK(timer.buckets[1] == 1);
  CHECK(timer.buckets[2] == 1);
  CHECK(timer.buckets[Timer::kBuckets - 1] == 1);
  CHECK(timer.longest == static_cast<uint64_t>(std::chrono::nanoseconds(24h).count()));
}

TEST_CASE("the text of the statistics names every kind of request") {
  Statistics statistics;
  statistics.of(RequestKind::kRead).add(3us, true);
  statistics.bytesRead += 7;
  auto text = statistics.text();
  CHECK(text.find("counter bytes.read 7\n") != text.npos);
  CHECK(text.find("timer request.read 1 1 3000 3000 2:1\n") != text.npos);
  for (auto name : kRequestNames) {
    INFO(name);
    CHECK(!name.empty());
    CHECK(text.find("timer request." + std::string(name) + " ") != text.npos);
  }
}
