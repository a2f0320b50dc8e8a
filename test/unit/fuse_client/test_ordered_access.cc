// Order among operations on one inode.
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "fuse_client/ordered_access.h"

using namespace trainfs::client;

namespace {

// Operations that note when they start and hold their pass until told to end.
struct Steps {
  std::shared_ptr<OrderedAccess> access = OrderedAccess::create();
  std::string started;
  std::map<char, OrderedAccess::Pass> passes;

  void shared(char name) {
    access->shared([this, name](OrderedAccess::Pass pass) { start(name, std::move(pass)); });
  }
  void exclusive(char name) {
    access->exclusive([this, name](OrderedAccess::Pass pass) { start(name, std::move(pass)); });
  }
  void end(char name) {
    auto pass = std::move(passes[name]);  // its end may start another one
    passes.erase(name);
  }

 private:
  void start(char name, OrderedAccess::Pass pass) {
    started += name;
    passes[name] = std::move(pass);
  }
};

}  // namespace

TEST_CASE("shared operations run together, an exclusive one alone, in the order of asking",
          "[client]") {
  Steps steps;
  steps.shared('a');
  steps.shared('b');
  steps.exclusive('C');
  steps.shared('d');  // behind the exclusive one, so that that is not starved
  CHECK(steps.started == "ab");
  steps.end('a');
  CHECK(steps.started == "ab");
  steps.end('b');
  CHECK(steps.started == "abC");
  steps.exclusive('E');
  steps.end('C');
  CHECK(steps.started == "abCd");
  steps.end('d');
  CHECK(steps.started == "abCdE");
  steps.end('E');
  steps.shared('f');
  CHECK(steps.started == "abCdEf");
}

TEST_CASE("access outlives its owner as long as a pass is held", "[client]") {
  auto access = OrderedAccess::create();
  OrderedAccess::Pass held;
  access->exclusive([&](OrderedAccess::Pass pass) { held = std::move(pass); });
  bool ran = false;
  access->shared([&](OrderedAccess::Pass) { ran = true; });
  access.reset();
  held.reset();
  CHECK(ran);
}

TEST_CASE("many threads: exclusive operations overlap with nothing", "[client]") {
  auto access = OrderedAccess::create();
  std::atomic<int> shared{0}, exclusive{0}, wrong{0}, done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        if ((i + t) % 5 == 0) {
          access->exclusive([&](OrderedAccess::Pass) {
            if (++exclusive != 1 || shared != 0) ++wrong;
            --exclusive;
            ++done;
          });
        } else {
          access->shared([&](OrderedAccess::Pass) {
            ++shared;
            if (exclusive != 0) ++wrong;
            --shared;
            ++done;
          });
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(done == 8000);
}

TEST_CASE("a long line is run without nesting", "[client]") {
  constexpr int kLong = 200'000;  // nested, this overflows the stack several times
  auto access = OrderedAccess::create();
  OrderedAccess::Pass held;
  access->exclusive([&](OrderedAccess::Pass pass) { held = std::move(pass); });
  int ran = 0;
  bool ordered = true;
  for (int i = 0; i < kLong; ++i)
    access->exclusive([&, i](OrderedAccess::Pass) { ordered &= ran++ == i; });
  held.reset();
  CHECK(ran == kLong);
  CHECK(ordered);
}

TEST_CASE("who is withdrawn leaves the line and what it holds, and stands in nobody's way",
          "[client]") {
  auto access = OrderedAccess::create();
  OrderedAccess::Pass held;
  std::string started;
  access->shared([&](OrderedAccess::Pass pass) { held = std::move(pass); });
  OrderedAccess::Pass barrier;
  access->exclusive([&](OrderedAccess::Pass pass) { barrier = std::move(pass), started += 'X'; });
  int a, b, unknown;
  auto memory = std::make_shared<int>();
  access->shared([&, memory](OrderedAccess::Pass) { started += 'a'; }, &a);
  access->shared([&](OrderedAccess::Pass) { started += 'b'; }, &b);
  REQUIRE(memory.use_count() == 2);
  access->withdraw(&a);
  access->withdraw(&a);
  access->withdraw(&unknown);
  CHECK(memory.use_count() == 1);
  held.reset();
  CHECK(started == "X");
  barrier.reset();
  CHECK(started == "Xb");
}
