#include <catch2/catch_test_macros.hpp>
#include <optional>
#include <vector>

#include "oss/range_lock.h"

using namespace trainfs::oss;
using Mode = RangeLocks::Mode;

namespace {

// Takes locks in order and tells who has got one.
class Takers {
 public:
  void take(Mode mode, BlockRange range) {
    auto number = holds_.size();
    holds_.emplace_back();
    spawn(wait(mode, range, number));
  }
  void release(size_t number) {
    holds_[number].reset();
    reactor_.turn(std::chrono::milliseconds(0));
  }
  bool has(size_t number) const { return holds_[number].has_value(); }

 private:
  Task<> wait(Mode mode, BlockRange range, size_t number) {
    auto hold = co_await locks_.take(mode, range);
    holds_[number].emplace(std::move(hold));
  }

  Reactor reactor_;
  RangeLocks locks_{reactor_};
  std::vector<std::optional<RangeLocks::Hold>> holds_;
};

}  // namespace

TEST_CASE("readers share, changes of other blocks go along, of the same wait") {
  Takers takers;
  takers.take(Mode::kRead, {0, 4});
  takers.take(Mode::kRead, {2, 6});
  takers.take(Mode::kChange, {6, 8});
  takers.take(Mode::kChange, {3, 5});
  REQUIRE(takers.has(0));
  REQUIRE(takers.has(1));
  REQUIRE(takers.has(2));
  REQUIRE_FALSE(takers.has(3));
  takers.release(0);
  REQUIRE_FALSE(takers.has(3));
  takers.release(1);
  REQUIRE(takers.has(3));
}

TEST_CASE("nobody overtakes an earlier one that he conflicts with") {
  Takers takers;
  takers.take(Mode::kRead, {0, 1});
  takers.take(Mode::kChange, {0, 2});  // waits
  takers.take(Mode::kRead, {1, 2});    // behind it, though free by itself
  takers.take(Mode::kRead, {5, 6});
  REQUIRE_FALSE(takers.has(1));
  REQUIRE_FALSE(takers.has(2));
  REQUIRE(takers.has(3));
  takers.release(0);
  REQUIRE(takers.has(1));
  REQUIRE_FALSE(takers.has(2));
  takers.release(1);
  REQUIRE(takers.has(2));
}

TEST_CASE("a sync goes along with readers, not with changes or another sync") {
  Takers takers;
  takers.take(Mode::kSync, {});
  takers.take(Mode::kRead, {0, 1});
  takers.take(Mode::kSync, {});
  takers.take(Mode::kChange, {9, 10});
  REQUIRE(takers.has(0));
  REQUIRE(takers.has(1));
  REQUIRE_FALSE(takers.has(2));
  REQUIRE_FALSE(takers.has(3));
  takers.release(0);
  REQUIRE(takers.has(2));
  REQUIRE_FALSE(takers.has(3));
  takers.release(2);
  REQUIRE(takers.has(3));
}
