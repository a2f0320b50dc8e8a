// Layouts for fuzz targets, and what holds for each that passes checkLayout.
#pragma once

#include "striping/layout.h"
#include "striping/layout_record.h"
#include "striping/layout_text.h"
#include "target.h"

namespace trainfs::fuzz {

inline std::vector<Layout> someLayouts() {
  Layout plain{.generation = 1, .components = {{.stripeBytes = 4 * kMiB, .stripeCount = 2}}};
  Layout placed = plain;
  placed.components[0].chains = {{3}, {70000}};
  placed.components[0].exists = {true, false};
  Layout grown = placed;
  grown.components[0].endBytes = 64 * kMiB;
  grown.components.push_back(
      {.startBytes = 64 * kMiB, .stripeCount = kStripeCountAll, .pool = "flash"});
  Layout listed{.components = {{.stripeBytes = 64 * kKiB, .stripeCount = 3, .ostList = {4, 0, 2}}}};
  return {Layout{}, plain, placed, grown, listed};
}

// Every range is cut into pieces that cover it, in order, and each knows its way back.
inline void requireSound(const Layout& layout, uint64_t offset) {
  require(striping::checkLayout(layout).empty());
  offset &= kFileBytesMax;
  FileRange range{offset, std::min<uint64_t>(kMiB, kFileBytesMax - offset)};
  auto split = striping::split(InodeId{5}, layout, range);
  uint64_t covered = 0, last = 0;
  for (auto& extent : split.extents) {
    require(extent.lengthBytes > 0 && extent.fileOffsetBytes >= last);
    last = extent.fileOffsetBytes + extent.lengthBytes;
    require(extent.fileOffsetBytes >= range.offsetBytes && last <= range.endBytes());
    require(striping::fileOffset(layout, extent.object.component, extent.object.stripe,
                                 extent.objectOffsetBytes) == extent.fileOffsetBytes);
    covered += extent.lengthBytes;
  }
  for (auto& hole : split.holes) covered += hole.lengthBytes;
  require(covered <= range.lengthBytes);
  bool within = range.lengthBytes == 0 || layout.components.empty() ||
                layout.components.back().endBytes < range.endBytes();
  require(within || covered == range.lengthBytes);
}

}  // namespace trainfs::fuzz
