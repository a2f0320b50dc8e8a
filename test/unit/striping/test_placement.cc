#include <catch2/catch_test_macros.hpp>

#include "striping/placement.h"

using namespace trainfs;
using namespace trainfs::striping;

namespace {

OstSpace ost(uint32_t index, uint64_t availableBytes = 50 * kGiB) {
  return {index, true, 100 * kGiB, availableBytes};
}

Component wanting(uint32_t stripeCount) {
  Component component;
  component.stripeCount = stripeCount;
  return component;
}

}  // namespace

TEST_CASE("consecutive files start at different OSTs") {
  std::vector<OstSpace> osts{ost(0), ost(1), ost(2), ost(3)};
  using Chains = std::vector<ChainId>;
  REQUIRE(*chooseChains(wanting(2), osts, 0) == Chains{{0}, {1}});
  REQUIRE(*chooseChains(wanting(2), osts, 1) == Chains{{2}, {3}});
  REQUIRE(*chooseChains(wanting(2), osts, 2) == Chains{{1}, {2}});
  REQUIRE(*chooseChains(wanting(2), osts, 3) == Chains{{3}, {0}});
}

TEST_CASE("a count beyond what is usable means all that are") {
  std::vector<OstSpace> osts{ost(4), ost(1), ost(2)};
  osts[0].active = false;
  REQUIRE(chooseChains(wanting(kStripeCountAll), osts, 0)->size() == 2);
  REQUIRE(chooseChains(wanting(7), osts, 0)->size() == 2);
}

TEST_CASE("full, unknown and inactive OSTs are passed over unless named") {
  std::vector<OstSpace> osts{ost(0), ost(1), ost(2), ost(3, kGiB - 1)};
  osts[1].active = false;
  osts[2].totalBytes = 0;
  for (uint64_t turn = 0; turn < 8; turn++)
    REQUIRE(*chooseChains(wanting(1), osts, turn) == std::vector<ChainId>{{0}});
  Component named = wanting(2);
  named.ostList = {3, 1};
  REQUIRE(*chooseChains(named, osts, 0) == std::vector<ChainId>{{3}, {1}});
  Component offset = wanting(2);
  offset.stripeOffset = 2;
  REQUIRE(*chooseChains(offset, osts, 0) == std::vector<ChainId>{{2}, {0}});
}

TEST_CASE("a small OST is not full before 1 % of it is left") {
  std::vector<OstSpace> osts{{0, true, 100 * kMiB, 2 * kMiB}};
  REQUIRE(chooseChains(wanting(1), osts, 0));
  osts[0].availableBytes = kMiB - 1;
  REQUIRE(chooseChains(wanting(1), osts, 0).errnoOrZero() == ENOSPC);
}

TEST_CASE("OSTs that do not exist cannot be named") {
  Component named = wanting(1);
  named.ostList = {9};
  REQUIRE(chooseChains(named, {ost(0)}, 0).errnoOrZero() == EINVAL);
  Component offset = wanting(1);
  offset.stripeOffset = 9;
  REQUIRE(chooseChains(offset, {ost(0)}, 0).errnoOrZero() == EINVAL);
}

TEST_CASE("a file is placed with its first component, or later if no OST is there") {
  Layout layout = defaultLayout();
  layout.components[0].endBytes = 4 * kMiB;
  layout.components.push_back({.startBytes = 4 * kMiB, .stripeBytes = 4 * kMiB});
  auto placed = place(layout, {ost(5)}, 0);
  REQUIRE(placed->components[0].chains == std::vector<ChainId>{{5}});
  REQUIRE(placed->components[0].exists == std::vector<bool>{false});
  REQUIRE_FALSE(placed->components[1].instantiated());

  OstSpace away = ost(5);
  away.active = false;
  REQUIRE(*place(layout, {away}, 0) == layout);
  REQUIRE(*place(layout, {}, 0) == layout);
  REQUIRE(place(layout, {ost(5, 0)}, 0).errnoOrZero() == ENOSPC);
  REQUIRE(place(Layout{}, {ost(5)}, 0)->components[0].stripeBytes == 4 * kMiB);
  REQUIRE(place(Layout{}, {ost(5)}, 0)->generation == 1);
}
