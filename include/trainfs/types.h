// The identities and plain values that every part of trainfs shares.
// Pure: no I/O, no clock, no third-party header. What they look like at rest and on the wire is in
// docs/format-*.md; changing a field here means changing one of those pages.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace trainfs {

inline constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

// Data is summed (XXH3, 64 bit) in blocks of this size, counted from an object's start.
inline constexpr uint64_t kBlockBytes = 64 * kKiB;

// Limits of the name space (POSIX <limits.h>: NAME_MAX, and the kernel's XATTR_*_MAX in linux/limits.h).
inline constexpr size_t kNameBytesMax = 255;
inline constexpr size_t kSymlinkBytesMax = 4095;
inline constexpr size_t kXattrNameBytesMax = 255;
inline constexpr size_t kXattrValueBytesMax = 64 * kKiB;
inline constexpr uint64_t kFileBytesMax = (uint64_t{1} << 63) - 1;
inline constexpr uint32_t kLinksMax = 1u << 31;

// 64 bits: MDT of birth (16) . counter (48). Never reused; 0 is no inode.
struct InodeId {
  uint64_t value = 0;
  friend auto operator<=>(const InodeId&, const InodeId&) = default;
  uint16_t birthMdt() const { return static_cast<uint16_t>(value >> 48); }
};
inline constexpr InodeId kRootInode{1};
inline constexpr InodeId kNoInode{0};

// An object is one stripe of one component of one layout generation of one file.
// 128 bits; its file on an OST is named by the hex form (ObjectId::hex in object_id.h).
struct ObjectId {
  InodeId inode;
  uint32_t generation = 0;
  uint8_t component = 0;
  uint32_t stripe = 0;  // < 2^24
  friend auto operator<=>(const ObjectId&, const ObjectId&) = default;
};

// An ordered list of OSTs in the cluster map. 0..65,535: the chain of that one OST.
struct ChainId {
  uint32_t value = 0;
  friend auto operator<=>(const ChainId&, const ChainId&) = default;
};
inline constexpr uint32_t kSingleOstChains = 65536;

// A client's session, made and evicted by MDT0 only; the epoch grows with each eviction.
struct SessionId {
  uint64_t value = 0;
  friend auto operator<=>(const SessionId&, const SessionId&) = default;
};
// Requests in flight per session and MDT: one per slot.
inline constexpr uint32_t kSlotsPerSession = 256;

struct FileRange {
  uint64_t offsetBytes = 0;
  uint64_t lengthBytes = 0;
  uint64_t endBytes() const { return offsetBytes + lengthBytes; }
  friend bool operator==(const FileRange&, const FileRange&) = default;
};

// A contiguous piece of one object, and where it lies in the file range it was split from.
struct ObjectExtent {
  ObjectId object;
  ChainId chain;
  uint64_t objectOffsetBytes = 0;
  uint64_t lengthBytes = 0;
  uint64_t fileOffsetBytes = 0;
  friend bool operator==(const ObjectExtent&, const ObjectExtent&) = default;
};

// ---- Layout: how a file is laid over objects (Lustre: PFL) ----

enum class Pattern : uint8_t { kRaid0 = 0, kMdt = 1 };  // striped over OSTs, or inline in the MDT

inline constexpr uint64_t kExtentEof = ~uint64_t{0};
inline constexpr uint32_t kStripesMax = 2000;
inline constexpr size_t kComponentsMax = 32;
inline constexpr uint64_t kStripeBytesMax = 4 * kGiB;
inline constexpr size_t kPoolNameBytesMax = 15;
inline constexpr uint32_t kStripeCountAll = 0xffffffff;  // `-c -1`: as many as there are
inline constexpr uint32_t kAnyOst = 0xffffffff;          // `-i -1`: wherever placement likes

struct Component {
  uint64_t startBytes = 0, endBytes = kExtentEof;  // [start, end)
  Pattern pattern = Pattern::kRaid0;
  uint64_t stripeBytes = kMiB;  // a multiple of kBlockBytes, <= kStripeBytesMax
  uint32_t stripeCount = 1;     // kStripeCountAll until chains are chosen
  uint32_t stripeOffset = kAnyOst;  // first OST asked for; kAnyOst: placement chooses
  std::string pool;
  std::vector<uint32_t> ostList;  // `-o`: exactly these OSTs, in this order; empty: placement chooses
  std::vector<ChainId> chains;    // one per stripe; empty until the component is first written
  std::vector<bool> exists;       // per stripe: the MDT knows that this object exists
  bool instantiated() const { return !chains.empty(); }
  friend bool operator==(const Component&, const Component&) = default;
};

// Components are ordered, disjoint, and without gaps from 0.
struct Layout {
  uint32_t generation = 0;
  std::vector<Component> components;
  friend bool operator==(const Layout&, const Layout&) = default;
};

// ---- Attributes ----

struct Time {
  int64_t seconds = 0;
  uint32_t nanoseconds = 0;  // < 1e9
  friend auto operator<=>(const Time&, const Time&) = default;
};

struct Attributes {
  InodeId inode;
  uint32_t mode = 0;  // type and permission bits, <sys/stat.h>
  uint32_t uid = 0, gid = 0;
  uint32_t links = 0;
  uint64_t sizeBytes = 0;
  uint64_t usedBytes = 0;  // st_blocks * 512
  uint64_t device = 0;     // st_rdev, for device nodes
  uint32_t flags = 0;      // FS_*_FL, <linux/fs.h>
  Time atime, mtime, ctime, btime;
  // How often size or mtime were set (truncate, utimes; not what writers report): tells whether what was
  // written was sent before or after that.
  uint64_t settings = 0;
  uint8_t acls = 0;  // AclBits, acl_names.h
  friend bool operator==(const Attributes&, const Attributes&) = default;
};

}  // namespace trainfs

template <>
struct std::hash<trainfs::InodeId> {
  size_t operator()(trainfs::InodeId id) const noexcept {
    return std::hash<uint64_t>{}(id.value * 0x9e3779b97f4a7c15u);
  }
};
template <>
struct std::hash<trainfs::ObjectId> {
  size_t operator()(const trainfs::ObjectId& id) const noexcept {
    uint64_t low = (uint64_t{id.generation} << 32) | (uint64_t{id.component} << 24) | id.stripe;
    return std::hash<uint64_t>{}((id.inode.value * 0x9e3779b97f4a7c15u) ^ (low * 0xc2b2ae3d27d4eb4fu));
  }
};
