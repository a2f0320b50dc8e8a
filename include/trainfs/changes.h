// Changes of the name space that mean the same to a client and to the MDS (wire: mds.capnp, Operation). Plain
// values. What the MDS has to add to a change before it can be applied is in src/mds/command.h.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainfs/types.h"

namespace trainfs {

struct LinkOp {
  InodeId inode, parent;
  std::string name;
};

// Which fields of SetAttrOp are meant; the values are wire format.
enum SetAttrMask : uint32_t {
  kSetMode = 1,
  kSetUid = 2,
  kSetGid = 4,
  kSetSize = 8,
  kSetAtime = 16,
  kSetMtime = 32,
  kSetAtimeNow = 64,
  kSetMtimeNow = 128,
  kSetFlags = 256,
  kKillPrivileges = 512,  // with size: clear set-user-ID and, on group-executables, set-group-ID
  kGrowSize = 1024,       // to sizeBytes, if that is more; in place of kSetSize
  kCutObjects = 2048,     // with either size: the OSTs cut the objects to keepBytes first
};
// What Attributes::settings counts.
inline constexpr uint32_t kSetSizeOrMtime = kSetSize | kSetMtime | kSetMtimeNow;

struct SetAttrOp {
  InodeId inode;
  uint32_t mask = 0;
  uint32_t mode = 0, uid = 0, gid = 0;
  uint64_t sizeBytes = 0;
  Time atime, mtime;
  uint32_t flags = 0;
  uint64_t keepBytes = 0;  // of the file, when the objects are cut; at most sizeBytes
};

struct SetXattrOp {
  InodeId inode;
  std::string name, value;
  bool create = false, replace = false;  // XATTR_CREATE, XATTR_REPLACE
};
struct RemoveXattrOp {
  InodeId inode;
  std::string name;
};

// What a writer knows; never shrinks the file.
struct ReportOp {
  InodeId inode;
  uint64_t sizeBytes = 0;
  uint64_t usedBytes = 0;                            // 0: unknown
  Time mtime;                                        // {0,0}: unchanged
  std::vector<std::pair<uint8_t, uint32_t>> exists;  // (component, stripe)
  bool stillWriting = false;
  bool killPrivileges = false;
  uint64_t settings = 0;   // Attributes::settings that size and mtime were made under
  bool overtaken = false;  // some of it was written under an older count
};

}  // namespace trainfs
