#include "striping/layout.h"

#include <algorithm>
#include <cassert>
#include <set>

namespace trainfs::striping {
namespace {

uint64_t addSaturating(uint64_t a, uint64_t b) {
  return b > kExtentEof - a ? kExtentEof : a + b;
}

uint64_t rowBytes(const Component& component) {
  return component.stripeBytes * component.stripeCount;
}

ObjectId objectId(InodeId inode, const Layout& layout, size_t component, uint32_t stripe) {
  return {inode, layout.generation, static_cast<uint8_t>(component), stripe};
}

// A component that was given its chains; what arithmetic on objects needs.
const Component* instantiatedAt(const Layout& layout, uint8_t index, uint32_t stripe) {
  if (index >= layout.components.size()) return nullptr;
  const Component& component = layout.components[index];
  return component.instantiated() && stripe < component.stripeCount ? &component : nullptr;
}

void append(std::vector<ObjectExtent>& extents, const ObjectExtent& next) {
  if (!extents.empty()) {
    ObjectExtent& last = extents.back();
    if (last.object == next.object &&
        last.objectOffsetBytes + last.lengthBytes == next.objectOffsetBytes &&
        last.fileOffsetBytes + last.lengthBytes == next.fileOffsetBytes) {
      last.lengthBytes += next.lengthBytes;
      return;
    }
  }
  extents.push_back(next);
}

// [begin, end) lies inside the component.
void splitComponent(InodeId inode, const Layout& layout, size_t index, uint64_t begin, uint64_t end,
                    std::vector<ObjectExtent>& extents) {
  const Component& component = layout.components[index];
  assert(component.stripeBytes > 0 && component.chains.size() == component.stripeCount);
  if (component.stripeCount == 1) {
    return append(extents, {objectId(inode, layout, index, 0), component.chains[0],
                            begin - component.startBytes, end - begin, begin});
  }
  while (begin < end) {
    uint64_t relative = begin - component.startBytes;
    uint64_t chunk = relative / component.stripeBytes;
    uint64_t inChunk = relative % component.stripeBytes;
    auto stripe = static_cast<uint32_t>(chunk % component.stripeCount);
    uint64_t length = std::min(component.stripeBytes - inChunk, end - begin);
    append(extents,
           {objectId(inode, layout, index, stripe), component.chains[stripe],
            chunk / component.stripeCount * component.stripeBytes + inChunk, length, begin});
    begin += length;
  }
}

std::string checkOsts(const Component& component) {
  const auto& osts = component.ostList;
  if (!osts.empty() && osts.size() != component.stripeCount)
    return "stripe count is not the number of OSTs listed";
  for (uint32_t ost : osts)
    if (ost >= kSingleOstChains) return "OST index " + std::to_string(ost) + " is too large";
  if (std::set<uint32_t>(osts.begin(), osts.end()).size() != osts.size())
    return "an OST is listed twice";
  if (component.stripeOffset != kAnyOst && component.stripeOffset >= kSingleOstChains)
    return "stripe offset is not an OST index";
  return {};
}

std::string checkComponent(const Component& component) {
  if (component.pattern != Pattern::kRaid0) return "pattern is not supported (only raid0 is)";
  if (component.endBytes <= component.startBytes) return "end is not beyond start";
  if (component.stripeBytes == 0 || component.stripeBytes % kBlockBytes != 0)
    return "stripe size is not a multiple of 64K";
  if (component.stripeBytes > kStripeBytesMax) return "stripe size is greater than 4G";
  if (component.endBytes != kExtentEof) {
    if (component.endBytes > kFileBytesMax + 1) return "end is beyond the greatest file size";
    if (component.endBytes % component.stripeBytes != 0)
      return "end is not a multiple of the stripe size";
  }
  bool all = component.stripeCount == kStripeCountAll;
  if (component.stripeCount == 0 || (!all && component.stripeCount > kStripesMax))
    return "stripe count is not between 1 and " + std::to_string(kStripesMax);
  if (!component.chains.empty() && component.chains.size() != component.stripeCount)
    return "stripe count is not the number of chains";
  if (!component.exists.empty() && component.exists.size() != component.chains.size())
    return "existence is not known per chain";
  if (auto error = checkPoolName(component.pool); !error.empty()) return error;
  return checkOsts(component);
}

}  // namespace

uint64_t defaultStripeBytes(uint64_t endBytes) {
  if (endBytes == kExtentEof || endBytes == 0) return kDefaultStripeBytes;
  uint64_t divisor = endBytes & -endBytes;
  return std::clamp(divisor, kBlockBytes, kDefaultStripeBytes);
}

std::string checkPoolName(const std::string& pool) {
  if (pool.size() > kPoolNameBytesMax)
    return "pool name is longer than " + std::to_string(kPoolNameBytesMax) + " characters";
  for (char c : pool) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    bool digit = c >= '0' && c <= '9';
    if (!letter && !digit && c != '_' && c != '-')
      return "pool name has characters other than letters, digits, '_' and '-'";
  }
  return {};
}

std::string checkLayout(const Layout& layout) {
  if (layout.components.size() > kComponentsMax)
    return "more than " + std::to_string(kComponentsMax) + " components";
  uint64_t expectedStart = 0;
  for (size_t i = 0; i < layout.components.size(); i++) {
    const Component& component = layout.components[i];
    std::string error = checkComponent(component);
    if (error.empty() && component.startBytes != expectedStart)
      error = i == 0 ? "start is not 0" : "start is not where the one before ends";
    if (!error.empty()) return "component " + std::to_string(i + 1) + ": " + error;
    expectedStart = component.endBytes;
  }
  return {};
}

std::optional<uint8_t> componentAt(const Layout& layout, uint64_t offsetBytes) {
  // At most kComponentsMax, nearly always one.
  for (size_t i = 0; i < layout.components.size(); i++)
    if (offsetBytes < layout.components[i].endBytes) return static_cast<uint8_t>(i);
  return std::nullopt;
}

Split split(InodeId inode, const Layout& layout, FileRange range) {
  Split result;
  uint64_t rangeEnd = addSaturating(range.offsetBytes, range.lengthBytes);
  for (size_t i = 0; i < layout.components.size(); i++) {
    const Component& component = layout.components[i];
    uint64_t begin = std::max(range.offsetBytes, component.startBytes);
    uint64_t end = std::min(rangeEnd, component.endBytes);
    if (begin >= end) continue;
    if (component.instantiated()) {
      splitComponent(inode, layout, i, begin, end, result.extents);
      continue;
    }
    if (!result.firstUninstantiated) result.firstUninstantiated = static_cast<uint8_t>(i);
    if (!result.holes.empty() && result.holes.back().endBytes() == begin)
      result.holes.back().lengthBytes += end - begin;
    else
      result.holes.push_back({begin, end - begin});
  }
  return result;
}

uint64_t fileOffset(const Layout& layout, uint8_t component, uint32_t stripe,
                    uint64_t objectOffsetBytes) {
  const Component* found = instantiatedAt(layout, component, stripe);
  assert(found != nullptr);
  // Object offsets also come from object servers: a wild one must not wrap around.
  unsigned __int128 row = objectOffsetBytes / found->stripeBytes;
  unsigned __int128 offset = row * rowBytes(*found) + uint64_t{stripe} * found->stripeBytes +
                             objectOffsetBytes % found->stripeBytes + found->startBytes;
  return offset > kExtentEof ? kExtentEof : static_cast<uint64_t>(offset);
}

uint64_t fileSize(const Layout& layout, const std::vector<ObjectSize>& objects) {
  uint64_t size = 0;
  for (const ObjectSize& object : objects) {
    const Component* component = instantiatedAt(layout, object.component, object.stripe);
    if (component == nullptr || object.sizeBytes == 0) continue;
    uint64_t last = fileOffset(layout, object.component, object.stripe, object.sizeBytes - 1);
    size = std::max(size, std::min(addSaturating(last, 1), component->endBytes));
  }
  return std::min(size, kFileBytesMax);
}

uint64_t objectSize(const Layout& layout, uint8_t component, uint32_t stripe,
                    uint64_t fileSizeBytes) {
  const Component* found = instantiatedAt(layout, component, stripe);
  if (found == nullptr || fileSizeBytes <= found->startBytes) return 0;
  uint64_t length = std::min(fileSizeBytes, found->endBytes) - found->startBytes;
  uint64_t rows = length / rowBytes(*found);
  uint64_t rest = length % rowBytes(*found);
  uint64_t before = uint64_t{stripe} * found->stripeBytes;
  uint64_t inLastRow = rest > before ? std::min(rest - before, found->stripeBytes) : 0;
  return rows * found->stripeBytes + inLastRow;
}

std::vector<PlacedObject> objectsOf(InodeId inode, const Layout& layout, bool onlyExisting) {
  std::vector<PlacedObject> objects;
  for (size_t i = 0; i < layout.components.size(); i++) {
    const Component& component = layout.components[i];
    for (uint32_t stripe = 0; stripe < component.chains.size(); stripe++) {
      bool exists = stripe < component.exists.size() && component.exists[stripe];
      if (exists || !onlyExisting)
        objects.push_back({objectId(inode, layout, i, stripe), component.chains[stripe], exists});
    }
  }
  return objects;
}

std::vector<ObjectExtent> existingRanges(InodeId inode, const Layout& layout, FileRange range) {
  std::vector<ObjectExtent> ranges;
  uint64_t rangeEnd = addSaturating(range.offsetBytes, range.lengthBytes);
  for (auto& [object, chain, exists] : objectsOf(inode, layout, true)) {
    uint64_t begin = objectSize(layout, object.component, object.stripe, range.offsetBytes);
    uint64_t end = objectSize(layout, object.component, object.stripe, rangeEnd);
    if (begin == end) continue;
    ranges.push_back({object, chain, begin, end - begin,
                      fileOffset(layout, object.component, object.stripe, begin)});
  }
  return ranges;
}

}  // namespace trainfs::striping
