#include <catch2/catch_test_macros.hpp>

#include "striping/layout.h"
#include "striping/placement.h"

using namespace trainfs;
using namespace trainfs::striping;

namespace {

constexpr InodeId kInode{42};

Component component(uint64_t start, uint64_t end, uint64_t stripeBytes,
                    std::vector<ChainId> chains) {
  Component result;
  result.startBytes = start;
  result.endBytes = end;
  result.stripeBytes = stripeBytes;
  result.stripeCount = static_cast<uint32_t>(chains.size());
  result.chains = std::move(chains);
  return result;
}

Layout striped(uint64_t stripeBytes, std::vector<ChainId> chains) {
  return {3, {component(0, kExtentEof, stripeBytes, std::move(chains))}};
}

}  // namespace

TEST_CASE("chunks go to the stripes in turn") {
  Layout layout = striped(kMiB, {{7}, {5}});
  Split cut = split(kInode, layout, {kMiB / 2, 2 * kMiB});
  ObjectId first{kInode, 3, 0, 0}, second{kInode, 3, 0, 1};
  REQUIRE(cut.extents == std::vector<ObjectExtent>{
                             {first, {7}, kMiB / 2, kMiB / 2, kMiB / 2},
                             {second, {5}, 0, kMiB, kMiB},
                             {first, {7}, kMiB, kMiB / 2, 2 * kMiB},
                         });
  REQUIRE(cut.holes.empty());
  REQUIRE_FALSE(cut.firstUninstantiated);
}

TEST_CASE("one stripe gives one extent however long the range is") {
  Split cut = split(kInode, striped(kMiB, {{0}}), {5, kFileBytesMax - 5});
  REQUIRE(cut.extents.size() == 1);
  REQUIRE(cut.extents[0].objectOffsetBytes == 5);
  REQUIRE(cut.extents[0].lengthBytes == kFileBytesMax - 5);
}

TEST_CASE("objects of a later component begin at offset 0") {
  Layout layout{1,
                {component(0, kMiB, kMiB, {{0}}), component(kMiB, kExtentEof, kMiB, {{1}, {2}})}};
  Split cut = split(kInode, layout, {kMiB - 1, 2});
  REQUIRE(cut.extents.size() == 2);
  REQUIRE(cut.extents[1].object == ObjectId{kInode, 1, 1, 0});
  REQUIRE(cut.extents[1].objectOffsetBytes == 0);
  REQUIRE(fileOffset(layout, 1, 1, 0) == 2 * kMiB);
}

TEST_CASE(
    "a range in components without chains is a hole, and a writer learns which to instantiate") {
  Layout layout{1,
                {component(0, kMiB, kMiB, {{0}}), component(kMiB, 2 * kMiB, kMiB, {}),
                 component(2 * kMiB, kExtentEof, kMiB, {})}};
  layout.components[1].stripeCount = 1;
  layout.components[2].stripeCount = kStripeCountAll;
  REQUIRE(checkLayout(layout).empty());
  Split cut = split(kInode, layout, {0, 3 * kMiB});
  REQUIRE(cut.extents.size() == 1);
  REQUIRE(cut.holes == std::vector<FileRange>{{kMiB, 2 * kMiB}});
  REQUIRE(cut.firstUninstantiated == 1);
}

TEST_CASE("nothing lies beyond the last component's end") {
  Layout layout{1, {component(0, kMiB, kMiB, {{0}})}};
  REQUIRE(componentAt(layout, kMiB - 1) == 0);
  REQUIRE_FALSE(componentAt(layout, kMiB));
  REQUIRE(split(kInode, layout, {kMiB - 1, 100}).extents[0].lengthBytes == 1);
  REQUIRE(split(kInode, layout, {kMiB, 100}).extents.empty());
  REQUIRE(split(kInode, Layout{}, {0, 100}).extents.empty());
}

TEST_CASE("truncation gives each object its share") {
  Layout layout = striped(kMiB, {{0}, {1}, {2}});
  uint64_t size = 4 * kMiB + 100;
  REQUIRE(objectSize(layout, 0, 0, size) == 2 * kMiB);
  REQUIRE(objectSize(layout, 0, 1, size) == kMiB + 100);
  REQUIRE(objectSize(layout, 0, 2, size) == kMiB);
  REQUIRE(objectSize(layout, 0, 2, 0) == 0);
  REQUIRE(fileSize(layout, {{0, 0, 2 * kMiB}, {0, 1, kMiB + 100}, {0, 2, kMiB}}) == size);
}

TEST_CASE("object sizes that cannot be do not make a file longer than its components") {
  Layout layout{1, {component(0, kMiB, kMiB, {{0}})}};
  REQUIRE(fileSize(layout, {{0, 0, ~uint64_t{0}}}) == kMiB);
  REQUIRE(fileSize(layout, {{0, 9, 5}, {9, 0, 5}}) == 0);
  REQUIRE(fileSize(striped(kMiB, {{0}, {1}}), {{0, 1, ~uint64_t{0}}}) == kFileBytesMax);
}

TEST_CASE("objects that the MDT knows to exist can be listed alone") {
  Layout layout = striped(kMiB, {{7}, {5}});
  REQUIRE(objectsOf(kInode, layout, true).empty());
  layout.components[0].exists = {false, true};
  auto all = objectsOf(kInode, layout, false);
  REQUIRE(all.size() == 2);
  REQUIRE_FALSE(all[0].exists);
  auto existing = objectsOf(kInode, layout, true);
  REQUIRE(existing.size() == 1);
  REQUIRE(existing[0].object == ObjectId{kInode, 3, 0, 1});
  REQUIRE(existing[0].chain == ChainId{5});
}

TEST_CASE("checkLayout says what is wrong and in which component") {
  Layout layout = defaultLayout();
  REQUIRE(checkLayout(layout).empty());
  REQUIRE(checkLayout(Layout{}).empty());
  auto broken = [&](auto change) {
    Layout copy = layout;
    change(copy.components[0]);
    return checkLayout(copy);
  };
  REQUIRE(broken([](Component& c) { c.stripeBytes = 1000; }) ==
          "component 1: stripe size is not a multiple of 64K");
  REQUIRE(broken([](Component& c) { c.stripeBytes = 8 * kGiB; }).find("4G") != std::string::npos);
  REQUIRE_FALSE(broken([](Component& c) { c.stripeBytes = 0; }).empty());
  REQUIRE_FALSE(broken([](Component& c) { c.stripeCount = 0; }).empty());
  REQUIRE_FALSE(broken([](Component& c) { c.stripeCount = kStripesMax + 1; }).empty());
  REQUIRE(broken([](Component& c) { c.stripeCount = kStripeCountAll; }).empty());
  REQUIRE_FALSE(broken([](Component& c) { c.chains = {{0}, {1}}; }).empty());
  REQUIRE_FALSE(broken([](Component& c) { c.exists = {true}; }).empty());
  REQUIRE_FALSE(broken([](Component& c) { c.startBytes = 4 * kMiB; }).empty());
  REQUIRE_FALSE(broken([](Component& c) { c.endBytes = 5 * kMiB; }).empty());
  REQUIRE_FALSE(broken([](Component& c) { c.endBytes = 0; }).empty());
  REQUIRE_FALSE(broken([](Component& c) { c.pattern = Pattern::kMdt; }).empty());
  REQUIRE_FALSE(broken([](Component& c) { c.pool = "sixteen-letters-"; }).empty());
  REQUIRE_FALSE(broken([](Component& c) { c.pool = "a b"; }).empty());
  REQUIRE_FALSE(broken([](Component& c) { c.ostList = {1, 2}; }).empty());
  REQUIRE_FALSE(broken([](Component& c) { c.stripeOffset = kSingleOstChains; }).empty());
  REQUIRE_FALSE(broken([](Component& c) { c.stripeCount = 2, c.ostList = {1, 1}; }).empty());
}
