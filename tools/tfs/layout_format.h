// What `tfs getstripe` prints: layouts in the forms of `lfs getstripe`. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "trainfs/types.h"

namespace trainfs::tfs {

// Which fields are wanted. One alone is printed as its bare value.
enum Field : uint32_t {
  kFieldStripeCount = 1 << 0,
  kFieldStripeSize = 1 << 1,
  kFieldStripeOffset = 1 << 2,
  kFieldPool = 1 << 3,
  kFieldObjects = 1 << 4,
  kFieldGeneration = 1 << 5,
  kFieldPattern = 1 << 6,
  kFieldComponentCount = 1 << 7,
  kFieldComponentId = 1 << 8,
  kFieldComponentFlags = 1 << 9,
  kFieldComponentStart = 1 << 10,
  kFieldComponentEnd = 1 << 11,
  kFieldMirrorCount = 1 << 12,
  kFieldMirrorId = 1 << 13,
  kFieldFid = 1 << 14,
};
inline constexpr uint32_t kFieldsDefault = kFieldFid - 1;

// A bound on a component's start or end: exactly, greater than (+N) or less than (-N).
struct Bound {
  char sign = '=';
  uint64_t bytes = 0;
  bool admits(uint64_t value) const;
};

struct Selection {
  uint32_t fields = 0;
  bool verbose = false;
  bool yaml = false;
  bool hexIndex = false;
  bool raw = false;  // a directory without a default of its own: zeros, not what it inherits
  bool showPath = true;
  std::optional<uint32_t> ost;  // only what has an object on this OST
  // Components: any given condition must hold.
  std::optional<uint32_t> componentId;
  std::optional<Bound> componentStart, componentEnd;
  std::optional<bool> initialized;
  bool filtersComponents() const {
    return componentId || componentStart || componentEnd || initialized;
  }
};

struct Striped {
  std::string path;
  InodeId inode;
  bool isDirectory = false;
  bool inherited = false;  // directory: the layout is not its own
  Layout layout;
};

// "" if the selection leaves nothing to print.
std::string formatStriped(const Striped& striped, const Selection& selection);

nlohmann::json stripedJson(const Striped& striped);

// The three numbers of a Lustre FID, of a file and of an object of one.
std::string fileFid(InodeId inode);
std::string objectFid(const ObjectId& object);

}  // namespace trainfs::tfs
