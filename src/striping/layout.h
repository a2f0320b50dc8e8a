// Layout arithmetic: which object holds which bytes of a file, and back. Pure functions over values.
// Lustre calls this RAID-0 striping in PFL components: stripe i of a component takes every
// stripeCount-th chunk of stripeBytes, chunks counted from the component's start, so that its objects begin
// at object offset 0 whatever the component's start is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainfs/result.h"
#include "trainfs/types.h"

namespace trainfs::striping {

// What a layout that does not say otherwise has.
inline constexpr uint64_t kDefaultStripeBytes = 4 * kMiB;

// The stripe size for a component that names none: the default, or the greatest power of two below it that
// divides the component's end.
uint64_t defaultStripeBytes(uint64_t endBytes);

// What is wrong with a layout, in words for the user; empty if nothing is. Checks component order and gaps,
// stripe size and count limits, that ends are multiples of the stripe size, pool names, and that chains and
// exists have stripeCount elements or none. All other functions here expect a layout that passes.
std::string checkLayout(const Layout& layout);
std::string checkPoolName(const std::string& pool);

// The component that holds a file offset; nullopt beyond the last component's end (EFBIG for writers).
std::optional<uint8_t> componentAt(const Layout& layout, uint64_t offsetBytes);

// Cuts a file range into object extents, in file order. Stops at the end of the last component.
// Makes one extent per chunk when there are several stripes: ranges are to be of bounded length.
struct Split {
  std::vector<ObjectExtent> extents;    // instantiated components only, ascending file offset, merged where adjacent
  std::vector<FileRange> holes;         // ranges in components without chains: read as zeros, instantiate before a write
  std::optional<uint8_t> firstUninstantiated;  // component to instantiate first, for a writer
};
Split split(InodeId inode, const Layout& layout, FileRange range);

// Where an object's byte lies in the file; kExtentEof if that is beyond 64 bits. The component must be
// instantiated and have that stripe.
uint64_t fileOffset(const Layout& layout, uint8_t component, uint32_t stripe, uint64_t objectOffsetBytes);

// The file size that object sizes imply: the highest file offset that any object's last byte has, plus one.
// Objects that the layout does not have count for nothing; no object reaches beyond its component.
struct ObjectSize {
  uint8_t component = 0;
  uint32_t stripe = 0;
  uint64_t sizeBytes = 0;
};
uint64_t fileSize(const Layout& layout, const std::vector<ObjectSize>& objects);

// The size that object (component, stripe) has when the file has `fileSizeBytes` and no holes at its end:
// what truncation sets.
uint64_t objectSize(const Layout& layout, uint8_t component, uint32_t stripe, uint64_t fileSizeBytes);

// Every object of the instantiated components; with `onlyExisting`, those the MDT knows to exist.
struct PlacedObject {
  ObjectId object;
  ChainId chain;
  bool exists = false;
};
std::vector<PlacedObject> objectsOf(InodeId inode, const Layout& layout, bool onlyExisting);

// A range of the file as one range of each object that is known to exist: however large it is, no
// more than there are stripes. The bytes of a range that has several chunks do not lie side by side
// in the file; fileOffsetBytes is that of the first.
std::vector<ObjectExtent> existingRanges(InodeId inode, const Layout& layout, FileRange range);

}  // namespace trainfs::striping
