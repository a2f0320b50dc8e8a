// Random layouts against a slow reference that walks a file byte by byte (in units of kBlockBytes /
// 16 where it can), and random bytes against the decoders.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>

#include "lib/seed.h"
#include "striping/layout.h"
#include "striping/layout_record.h"
#include "striping/layout_text.h"
#include "striping/placement.h"

using namespace trainfs;
using namespace trainfs::striping;
using trainfs::test::Random;
using trainfs::test::testSeed;

namespace {

constexpr InodeId kInode{0x0001000000000abc};

#define SEEDED(random)           \
  uint64_t seed = testSeed();    \
  INFO("TRAINFS_SEED=" << seed); \
  Random random(seed)

std::string randomPool(Random& random) {
  std::string pool;
  for (uint64_t i = random.between(0, kPoolNameBytesMax); i > 0; i--)
    pool += "abcXYZ0189_-"[random.between(0, 11)];
  return pool;
}

struct Shape {
  uint64_t stripeBlocksMax = 4;  // of kBlockBytes
  uint32_t stripesMax = 5;
  uint64_t rowsMax = 4;  // of a component that is not the last
  unsigned instantiatedPercent = 80;
};

Component randomComponent(Random& random, const Shape& shape) {
  Component component;
  component.stripeBytes = random.between(1, shape.stripeBlocksMax) * kBlockBytes;
  component.stripeCount = static_cast<uint32_t>(random.between(1, shape.stripesMax));
  if (random.chance(30)) component.pool = randomPool(random);
  if (random.chance(20))
    component.stripeOffset = static_cast<uint32_t>(random.between(0, kSingleOstChains - 1));
  if (random.chance(20)) {
    std::set<uint32_t> osts;
    while (osts.size() < component.stripeCount)
      osts.insert(static_cast<uint32_t>(random.between(0, kSingleOstChains - 1)));
    component.ostList.assign(osts.begin(), osts.end());
  }
  if (!random.chance(shape.instantiatedPercent)) {
    if (component.ostList.empty() && random.chance(20)) component.stripeCount = kStripeCountAll;
    return component;
  }
  for (uint32_t i = 0; i < component.stripeCount; i++)
    component.chains.push_back({static_cast<uint32_t>(random.between(0, 200))});
  if (random.chance(70))
    for (uint32_t i = 0; i < component.stripeCount; i++)
      component.exists.push_back(random.chance(50));
  return component;
}

Layout randomLayout(Random& random, const Shape& shape) {
  Layout layout;
  layout.generation = static_cast<uint32_t>(random.between(0, ~uint32_t{0}));
  uint64_t start = 0;
  uint64_t count = random.between(1, 4);
  for (uint64_t i = 0; i < count; i++) {
    Component component = randomComponent(random, shape);
    component.startBytes = start;
    bool endless = i + 1 == count && random.chance(70);
    if (!endless) {
      uint64_t chunks = start / component.stripeBytes + 1 + random.between(0, shape.rowsMax * 5);
      component.endBytes = chunks * component.stripeBytes;
    }
    start = component.endBytes;
    layout.components.push_back(std::move(component));
  }
  REQUIRE(checkLayout(layout) == "");
  return layout;
}

// Where one byte of a file lies, found by counting chunks from the component's start.
struct Place {
  uint8_t component = 0;
  uint32_t stripe = 0;
  uint64_t offset = 0;
  auto operator<=>(const Place&) const = default;
};
std::optional<Place> placeOf(const Layout& layout, uint64_t byte) {
  for (size_t i = 0; i < layout.components.size(); i++) {
    const Component& component = layout.components[i];
    if (byte < component.startBytes || byte >= component.endBytes) continue;
    if (!component.instantiated()) return std::nullopt;
    std::vector<uint64_t> filled(component.stripeCount);
    uint32_t stripe = 0;
    uint64_t left = byte - component.startBytes;
    while (left >= component.stripeBytes) {
      filled[stripe] += component.stripeBytes;
      stripe = stripe + 1 == component.stripeCount ? 0 : stripe + 1;
      left -= component.stripeBytes;
    }
    return Place{static_cast<uint8_t>(i), stripe, filled[stripe] + left};
  }
  return std::nullopt;
}

Place placeOf(const ObjectExtent& extent) {
  return {extent.object.component, extent.object.stripe, extent.objectOffsetBytes};
}

// Extents and holes, in file order, cover [begin, end) once.
void requireCover(const Split& cut, uint64_t begin, uint64_t end) {
  std::map<uint64_t, uint64_t> pieces;
  for (const auto& extent : cut.extents) {
    REQUIRE(extent.lengthBytes > 0);
    REQUIRE(pieces.emplace(extent.fileOffsetBytes, extent.lengthBytes).second);
  }
  for (const auto& hole : cut.holes) {
    REQUIRE(hole.lengthBytes > 0);
    REQUIRE(pieces.emplace(hole.offsetBytes, hole.lengthBytes).second);
  }
  for (const auto& [offset, length] : pieces) {
    REQUIRE(offset == begin);
    begin += length;
  }
  REQUIRE(begin == end);
}

}  // namespace

TEST_CASE("split agrees with counting chunks, byte for byte") {
  SEEDED(random);
  for (int round = 0; round < 300; round++) {
    Layout layout = randomLayout(random, {});
    INFO(formatLayout(layout));
    uint64_t limit = layout.components.back().endBytes;
    FileRange range{random.between(0, 8 * kMiB), random.between(0, 4 * kMiB)};
    Split cut = split(kInode, layout, range);
    uint64_t end = std::max(range.offsetBytes, std::min(range.endBytes(), limit));
    requireCover(cut, std::min(range.offsetBytes, end), end);
    for (size_t i = 0; i < cut.extents.size(); i++) {
      const ObjectExtent& extent = cut.extents[i];
      REQUIRE((i == 0 || cut.extents[i - 1].fileOffsetBytes < extent.fileOffsetBytes));
      REQUIRE(extent.object.inode == kInode);
      REQUIRE(extent.object.generation == layout.generation);
      Place place = placeOf(extent);
      REQUIRE(extent.chain == layout.components[place.component].chains[place.stripe]);
      // First, last and a few bytes between: every byte would take minutes and find nothing more.
      for (int byte = 0; byte < 6; byte++) {
        uint64_t at = byte == 0   ? 0
                      : byte == 1 ? extent.lengthBytes - 1
                                  : random.between(0, extent.lengthBytes - 1);
        Place expected = place;
        expected.offset += at;
        REQUIRE(placeOf(layout, extent.fileOffsetBytes + at) == expected);
        REQUIRE(fileOffset(layout, place.component, place.stripe, expected.offset) ==
                extent.fileOffsetBytes + at);
      }
    }
    for (const auto& hole : cut.holes) {
      REQUIRE_FALSE(placeOf(layout, hole.offsetBytes));
      REQUIRE_FALSE(placeOf(layout, hole.endBytes() - 1));
      REQUIRE(cut.firstUninstantiated);
    }
    if (cut.firstUninstantiated)
      REQUIRE(componentAt(layout, cut.holes.at(0).offsetBytes) == cut.firstUninstantiated);
  }
}

TEST_CASE("split keeps its promises at the far end of a file and with the largest stripes") {
  SEEDED(random);
  Shape wide{.stripeBlocksMax = kStripeBytesMax / kBlockBytes,
             .stripesMax = 2000,
             .instantiatedPercent = 90};
  for (int round = 0; round < 200; round++) {
    Layout layout = randomLayout(random, wide);
    INFO(formatLayout(layout).substr(0, 300));
    uint64_t offset = random.chance(50) ? kFileBytesMax - random.between(0, 1000 * kMiB)
                                        : random.between(0, kFileBytesMax);
    // Also ranges that would end beyond 64 bits.
    FileRange range{offset, random.chance(10) ? 64 * kMiB : random.between(1, 64 * kMiB)};
    uint64_t limit = layout.components.back().endBytes;
    uint64_t end = std::max(offset, std::min(range.endBytes(), limit));
    Split cut = split(kInode, layout, range);
    requireCover(cut, std::min(offset, end), end);
    for (const ObjectExtent& extent : cut.extents) {
      Place place = placeOf(extent);
      uint64_t last = extent.lengthBytes - 1;
      REQUIRE(fileOffset(layout, place.component, place.stripe, place.offset) ==
              extent.fileOffsetBytes);
      REQUIRE(fileOffset(layout, place.component, place.stripe, place.offset + last) ==
              extent.fileOffsetBytes + last);
      uint64_t size = extent.fileOffsetBytes + extent.lengthBytes;
      REQUIRE(objectSize(layout, place.component, place.stripe, size) ==
              place.offset + extent.lengthBytes);
    }
  }
}

TEST_CASE("a range is one range of each object, with the bytes that split finds") {
  SEEDED(random);
  for (int round = 0; round < 300; round++) {
    Layout layout = randomLayout(random, {});
    INFO(formatLayout(layout));
    for (auto& component : layout.components)
      component.exists.assign(component.chains.size(), true);
    uint64_t begin = random.between(0, 40 * kBlockBytes),
             bytes = random.between(0, 40 * kBlockBytes);
    std::map<ObjectId, std::pair<uint64_t, uint64_t>> expected;  // -> [begin, end)
    for (auto& extent : split(kInode, layout, {begin, bytes}).extents) {
      uint64_t end = extent.objectOffsetBytes + extent.lengthBytes;
      auto [at, first] = expected.try_emplace(extent.object, extent.objectOffsetBytes, end);
      if (first) continue;
      REQUIRE(at->second.second == extent.objectOffsetBytes);
      at->second.second = end;
    }
    auto ranges = existingRanges(kInode, layout, {begin, bytes});
    REQUIRE(ranges.size() == expected.size());
    for (auto& range : ranges) {
      REQUIRE(expected.at(range.object).first == range.objectOffsetBytes);
      REQUIRE(expected.at(range.object).second == range.objectOffsetBytes + range.lengthBytes);
    }
  }
}

TEST_CASE("a range of exabytes has no more object ranges than there are stripes") {
  Layout layout;
  layout.components.push_back(
      {.stripeBytes = kBlockBytes, .stripeCount = 2, .chains = {{0}, {1}}, .exists = {true, true}});
  auto ranges = existingRanges(kInode, layout, {1, kFileBytesMax - 1});
  REQUIRE(ranges.size() == 2);
  CHECK(ranges[0].objectOffsetBytes == 1);
  CHECK(ranges[0].lengthBytes + ranges[1].lengthBytes == kFileBytesMax - 1);
}

TEST_CASE("a range that would end beyond 64 bits stops there") {
  Layout layout = defaultLayout();
  setChains(layout.components[0], {{0}});
  Split cut = split(kInode, layout, {kExtentEof - 10, 100});
  REQUIRE(cut.extents.size() == 1);
  REQUIRE(cut.extents[0].lengthBytes == 10);
}

TEST_CASE("file and object sizes agree with a simulated file") {
  SEEDED(random);
  for (int round = 0; round < 300; round++) {
    Shape shape{.instantiatedPercent = 90};
    Layout layout = randomLayout(random, shape);
    INFO(formatLayout(layout));
    std::map<std::pair<uint8_t, uint32_t>, uint64_t> sizes;
    uint64_t written = 0;
    for (uint64_t writes = random.between(0, 5); writes > 0; writes--) {
      Split cut = split(kInode, layout, {random.between(0, 4 * kMiB), random.between(1, kMiB)});
      for (const ObjectExtent& extent : cut.extents) {
        uint64_t& size = sizes[{extent.object.component, extent.object.stripe}];
        size = std::max(size, extent.objectOffsetBytes + extent.lengthBytes);
        written = std::max(written, extent.fileOffsetBytes + extent.lengthBytes);
      }
    }
    std::vector<ObjectSize> objects;
    for (const auto& [object, size] : sizes) objects.push_back({object.first, object.second, size});
    REQUIRE(fileSize(layout, objects) == written);

    // A file without holes of that size: every object ends where its last chunk does.
    std::vector<ObjectSize> whole;
    for (const PlacedObject& placed : objectsOf(kInode, layout, false)) {
      auto [component, stripe] = std::pair(placed.object.component, placed.object.stripe);
      uint64_t size = objectSize(layout, component, stripe, written);
      uint64_t expected = 0;
      for (const ObjectExtent& extent : split(kInode, layout, {0, written}).extents)
        if (extent.object == placed.object)
          expected = extent.objectOffsetBytes + extent.lengthBytes;
      REQUIRE(size == expected);
      whole.push_back({component, stripe, size});
    }
    // `written` ends inside an instantiated component, so nothing of it is lost in a hole.
    REQUIRE(fileSize(layout, whole) == written);
  }
}

TEST_CASE("layouts survive their record and their text") {
  SEEDED(random);
  for (int round = 0; round < 1000; round++) {
    Shape shape{.stripeBlocksMax = random.chance(20) ? 65536u : 8u,
                .stripesMax = random.chance(5) ? 2000u : 6u};
    Layout layout = randomLayout(random, shape);
    auto decoded = decodeLayout(encodeLayout(layout));
    REQUIRE(decoded);
    REQUIRE(*decoded == layout);
    std::string text = formatLayout(layout);
    INFO(text.substr(0, 1000));
    auto kept = parseLayout(text, StateFields::kKeep);
    // Several very wide components: more than an extended attribute holds.
    if (text.size() > kLayoutTextBytesMax) {
      REQUIRE(kept.error != "");
      continue;
    }
    REQUIRE(kept.error == "");
    REQUIRE(kept.layout == layout);
    auto wish = parseLayout(text);
    REQUIRE(wish.error == "");
    for (Component& component : layout.components) {
      component.chains.clear();
      component.exists.clear();
    }
    layout.generation = 0;
    REQUIRE(wish.layout == layout);
  }
}

TEST_CASE("whatever the bytes, decoding a record ends in a valid layout or an error") {
  SEEDED(random);
  for (int round = 0; round < 20000; round++) {
    std::string bytes;
    if (random.chance(30)) {
      for (uint64_t i = random.between(0, 200); i > 0; i--)
        bytes += static_cast<char>(random.between(0, 255));
      if (!bytes.empty() && random.chance(80)) bytes[0] = kLayoutRecordVersion;
    } else {
      bytes = encodeLayout(randomLayout(random, {}));
      for (uint64_t i = random.between(1, 3); i > 0; i--)
        bytes[random.between(0, bytes.size() - 1)] = static_cast<char>(random.between(0, 255));
      if (random.chance(10)) bytes.resize(random.between(0, bytes.size()));
    }
    auto decoded = decodeLayout(bytes);
    if (!decoded)
      REQUIRE(decoded.errnoOrZero() == EPROTO);
    else if (!bytes.empty())
      REQUIRE(encodeLayout(*decoded) == bytes);
  }
}

TEST_CASE("whatever the text, parsing ends in a valid layout or an error") {
  SEEDED(random);
  constexpr std::string_view kAlphabet = "=,\n -0123456789eofMGTkxstart_";
  for (int round = 0; round < 20000; round++) {
    std::string text;
    if (random.chance(30)) {
      for (uint64_t i = random.between(0, 200); i > 0; i--)
        text += kAlphabet[random.between(0, kAlphabet.size() - 1)];
    } else {
      text = formatLayout(randomLayout(random, {}));
      for (uint64_t i = random.between(1, 3); i > 0; i--) {
        size_t at = random.between(0, text.size() - 1);
        if (random.chance(30))
          text.erase(at, random.between(1, 20));
        else
          text[at] = random.chance(90) ? kAlphabet[random.between(0, kAlphabet.size() - 1)]
                                       : static_cast<char>(random.between(0, 255));
        if (text.empty()) break;
      }
    }
    auto parsed = parseLayout(text, random.chance(50) ? StateFields::kKeep : StateFields::kIgnore);
    if (!parsed.error.empty()) continue;
    INFO(text);
    REQUIRE(checkLayout(parsed.layout) == "");
    REQUIRE_FALSE(parsed.layout.components.empty());
    auto again = parseLayout(formatLayout(parsed.layout), StateFields::kKeep);
    REQUIRE(again.error == "");
    REQUIRE(again.layout == parsed.layout);
  }
}

// ---- placement ----

namespace {

std::vector<OstSpace> randomOsts(Random& random, size_t count) {
  std::vector<OstSpace> osts;
  for (uint32_t i = 0; i < count; i++)
    osts.push_back({i * 3 + 1, true, 100 * kGiB, random.between(40 * kGiB, 45 * kGiB)});
  std::shuffle(osts.begin(), osts.end(), std::mt19937_64(random.between(0, ~uint64_t{0})));
  return osts;
}

std::set<uint32_t> distinct(const std::vector<ChainId>& chains) {
  std::set<uint32_t> result;
  for (ChainId chain : chains) result.insert(chain.value);
  return result;
}

}  // namespace

TEST_CASE("stripes of a component are on distinct OSTs that can take them") {
  SEEDED(random);
  for (int round = 0; round < 2000; round++) {
    auto osts = randomOsts(random, random.between(1, 30));
    std::set<uint32_t> good;
    for (OstSpace& ost : osts) {
      if (random.chance(15)) ost.active = false;
      if (random.chance(15)) ost.availableBytes = random.between(0, kGiB - 1);
      if (random.chance(5)) ost.totalBytes = ost.availableBytes = 0;
      if (random.chance(10)) ost.availableBytes = std::min(ost.totalBytes, 99 * kGiB);
      if (ost.active && ost.availableBytes >= kGiB) good.insert(ost.index);
    }
    Component component;
    component.stripeCount =
        random.chance(20) ? kStripeCountAll : static_cast<uint32_t>(random.between(1, 40));
    uint64_t turn = random.between(0, ~uint64_t{0});
    auto chains = chooseChains(component, osts, turn);
    if (good.empty()) {
      REQUIRE(chains.errnoOrZero() == ENOSPC);
      continue;
    }
    REQUIRE(chains);
    REQUIRE(chains->size() == std::min<size_t>(component.stripeCount, good.size()));
    auto chosen = distinct(*chains);
    REQUIRE(chosen.size() == chains->size());
    REQUIRE(std::includes(good.begin(), good.end(), chosen.begin(), chosen.end()));
    REQUIRE(*chooseChains(component, osts, turn) == *chains);  // of its arguments alone

    component.stripeOffset = osts[random.between(0, osts.size() - 1)].index;
    auto from = chooseChains(component, osts, turn);
    REQUIRE(from);
    REQUIRE((*from)[0].value == component.stripeOffset);
    REQUIRE(distinct(*from).size() == from->size());
    good.insert(component.stripeOffset);
    REQUIRE(from->size() == std::min<size_t>(component.stripeCount, good.size()));
  }
}

TEST_CASE("over as many turns as there are OSTs, each gets the same, first stripes too") {
  SEEDED(random);
  for (int round = 0; round < 200; round++) {
    size_t n = random.between(1, 40);
    auto osts = randomOsts(random, n);
    Component component;
    component.stripeCount = static_cast<uint32_t>(random.between(1, n));
    std::map<uint32_t, uint64_t> objects, firsts;
    uint64_t start = random.between(0, 1'000'000) * n;
    for (uint64_t turn = start; turn < start + n; turn++) {
      auto chains = *chooseChains(component, osts, turn);
      firsts[chains[0].value]++;
      for (ChainId chain : chains) objects[chain.value]++;
    }
    REQUIRE(firsts.size() == n);
    REQUIRE(objects.size() == n);
    for (const auto& [ost, count] : objects) REQUIRE(count == component.stripeCount);
  }
}

TEST_CASE("OSTs with more free space get more of the files once they differ much") {
  std::vector<OstSpace> osts;
  for (uint32_t i = 0; i < 8; i++)
    osts.push_back({i, true, 1000 * kGiB, i < 4 ? 200 * kGiB : 600 * kGiB});
  std::map<uint32_t, double> share;
  constexpr uint64_t kFiles = 20000;
  for (uint64_t turn = 0; turn < kFiles; turn++) {
    auto chains = chooseChains({}, osts, turn);
    share[chains->at(0).value] += 1.0 / kFiles;
  }
  for (uint32_t i = 0; i < 8; i++) {
    double expected = i < 4 ? 200.0 / 3200 : 600.0 / 3200;
    INFO("OST " << i << " got " << share[i]);
    REQUIRE(share[i] > expected * 0.9);
    REQUIRE(share[i] < expected * 1.1);
  }
}

TEST_CASE("an OST list is taken exactly as it is") {
  SEEDED(random);
  for (int round = 0; round < 200; round++) {
    auto osts = randomOsts(random, random.between(1, 20));
    Component component;
    for (const OstSpace& ost : osts)
      if (random.chance(50)) component.ostList.push_back(ost.index);
    if (component.ostList.empty()) continue;
    component.stripeCount = static_cast<uint32_t>(component.ostList.size());
    auto chains = *chooseChains(component, osts, random.between(0, 100));
    REQUIRE(chains.size() == component.ostList.size());
    for (size_t i = 0; i < chains.size(); i++) REQUIRE(chains[i].value == component.ostList[i]);
  }
}
