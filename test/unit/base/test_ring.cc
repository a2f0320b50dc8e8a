#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "lib/temp_dir.h"
#include "trainfs/ring.h"

namespace trainfs {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kForLong{10'000};

struct Recorder final : Completion {
  std::vector<int> results;
  void completed(int result) override { results.push_back(result); }
};

void queueNop(Ring& ring, Completion* completion) {
  auto* sqe = ring.take();
  io_uring_prep_nop(sqe);
  Ring::attach(sqe, completion);
}

// Runs the ring until `done`, in bounded time.
template <typename Done>
bool runUntil(Ring& ring, Done done) {
  auto end = steady_clock::now() + kForLong;
  while (!done() && steady_clock::now() < end) ring.run(milliseconds(100));
  return done();
}

}  // namespace

TEST_CASE("a completion gets the result of its operation", "[ring]") {
  Ring ring(8);
  Recorder nop;
  queueNop(ring, &nop);
  CHECK(ring.inFlight() == 1);
  CHECK(ring.run(kForLong) == 1);
  CHECK(nop.results == std::vector{0});
  CHECK(ring.inFlight() == 0);
}

TEST_CASE("data is read from a file, and errors come as negative errno", "[ring]") {
  test::TempDir dir;
  int fd = open(dir.write("f", "hello ring").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  Ring ring(8);
  Recorder good, bad;
  char buffer[32] = {};
  auto* sqe = ring.take();
  io_uring_prep_read(sqe, fd, buffer, sizeof buffer, 6);
  Ring::attach(sqe, &good);
  sqe = ring.take();
  io_uring_prep_read(sqe, -1, buffer, sizeof buffer, 0);
  Ring::attach(sqe, &bad);
  REQUIRE(runUntil(ring, [&] { return ring.inFlight() == 0; }));
  CHECK(good.results == std::vector{4});
  CHECK(std::string(buffer) == "ring");
  CHECK(bad.results == std::vector{-EBADF});
  close(fd);
}

TEST_CASE("an operation without a completion is counted and its result dropped", "[ring]") {
  Ring ring(8);
  Recorder nop;
  queueNop(ring, &nop);
  ring.run(kForLong);
  io_uring_prep_nop(ring.take());  // in a slot that was used before
  CHECK(ring.inFlight() == 1);
  REQUIRE(runUntil(ring, [&] { return ring.inFlight() == 0; }));
  CHECK(nop.results.size() == 1);
}

TEST_CASE("run returns at its timeout when nothing happens, and at once for timeout 0", "[ring]") {
  Ring ring(8);
  auto start = steady_clock::now();
  CHECK(ring.run(milliseconds(30)) == 0);
  CHECK(steady_clock::now() - start >= milliseconds(30));
  start = steady_clock::now();
  CHECK(ring.run(milliseconds(0)) == 0);
  CHECK(steady_clock::now() - start < kForLong);
}

TEST_CASE("a timeout operation fires", "[ring]") {
  Ring ring(8);
  Recorder timer;
  __kernel_timespec delay{.tv_sec = 0, .tv_nsec = 1'000'000};
  auto* sqe = ring.take();
  io_uring_prep_timeout(sqe, &delay, 0, 0);
  Ring::attach(sqe, &timer);
  REQUIRE(runUntil(ring, [&] { return ring.inFlight() == 0; }));
  CHECK(timer.results == std::vector{-ETIME});
}

TEST_CASE("far more operations than the queues hold all complete", "[ring]") {
  Ring ring(4);
  Recorder nops;
  constexpr size_t kCount = 1000;  // submission queue 4, completion queue 32
  for (size_t i = 0; i < kCount; ++i) queueNop(ring, &nops);
  CHECK(ring.inFlight() == kCount);
  REQUIRE(runUntil(ring, [&] { return ring.inFlight() == 0; }));
  CHECK(nops.results.size() == kCount);
}

TEST_CASE("a completion may queue more operations and destroy itself", "[ring]") {
  struct Chain final : Completion {
    Ring& ring;
    int left;
    int& ended;
    Chain(Ring& ring, int left, int& ended) : ring(ring), left(left), ended(ended) {}
    void completed(int) override {
      if (left > 0) {
        for (int i = 0; i < 2; ++i) queueNop(ring, new Chain(ring, left - 1, ended));
      } else {
        ++ended;
      }
      delete this;
    }
  };
  Ring ring(4);
  int ended = 0;
  queueNop(ring, new Chain(ring, 8, ended));
  REQUIRE(runUntil(ring, [&] { return ring.inFlight() == 0; }));
  CHECK(ended == 256);
}

TEST_CASE("a wake from another thread ends the wait", "[ring]") {
  Ring ring(8);
  int woken = 0;
  Waker waker(ring, [&] { ++woken; });
  std::thread other([&] { waker.wake(); });
  CHECK(runUntil(ring, [&] { return woken > 0; }));
  other.join();
  CHECK(woken == 1);

  std::thread([&] { waker.wake(); }).join();  // armed again
  CHECK(runUntil(ring, [&] { return woken == 2; }));
}

TEST_CASE("many wakes before a run are one", "[ring]") {
  Ring ring(8);
  int woken = 0;
  Waker waker(ring, [&] { ++woken; });
  for (int i = 0; i < 100; ++i) waker.wake();
  REQUIRE(runUntil(ring, [&] { return woken > 0; }));
  ring.run(milliseconds(0));
  // The read may have been submitted before, between or after the wakes, never a hundred times.
  CHECK(woken <= 2);
}

TEST_CASE("no wake is lost between threads", "[ring]") {
  Ring ring(8);
  constexpr int kItems = 2000;
  std::atomic<int> produced{0};
  int seen = 0;
  Waker waker(ring, [&] { seen = produced.load(); });
  std::thread producer([&] {
    for (int i = 0; i < kItems; ++i) {
      ++produced;
      waker.wake();
    }
  });
  CHECK(runUntil(ring, [&] { return seen == kItems; }));
  producer.join();
}

TEST_CASE("a waker goes without losing what others have in flight", "[ring]") {
  Ring ring(8);
  Recorder nops;
  bool woken = false;
  auto waker = std::make_unique<Waker>(ring, [&] { woken = true; });
  queueNop(ring, &nops);
  ring.run(milliseconds(0));
  for (int i = 0; i < 5; ++i) queueNop(ring, &nops);
  waker.reset();
  CHECK_FALSE(woken);
  REQUIRE(runUntil(ring, [&] { return nops.results.size() == 6; }));
  CHECK(ring.inFlight() == 0);
}

TEST_CASE("a waker woken but not yet run goes safely", "[ring]") {
  Ring ring(8);
  bool woken = false;
  {
    Waker waker(ring, [&] { woken = true; });
    ring.run(milliseconds(0));
    waker.wake();
  }
  ring.run(milliseconds(0));
  CHECK_FALSE(woken);
  CHECK(ring.inFlight() == 0);
}

TEST_CASE("await gives the result of one operation and leaves the others to run", "[ring]") {
  Ring ring(8);
  Recorder first, second, third;
  queueNop(ring, &first);
  queueNop(ring, &second);
  queueNop(ring, &third);
  CHECK(ring.await(&second) == 0);
  CHECK(second.results.empty());
  CHECK(first.results.empty());
  CHECK(ring.await(&first) == 0);  // set aside by the first await, or still to come
  CHECK(ring.run(kForLong) == 1);
  CHECK(third.results == std::vector{0});
  CHECK(ring.inFlight() == 0);
}

TEST_CASE("a ring of no entries is refused", "[ring]") {
  CHECK_THROWS_AS(Ring(0), std::system_error);
}

}  // namespace trainfs
