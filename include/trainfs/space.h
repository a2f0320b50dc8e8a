// Room on a file system: that of a target, or of all of them. What statvfs(2) says, in bytes.
#pragma once

#include <cstdint>
#include <string>

#include "trainfs/result.h"

namespace trainfs {

struct Space {
  uint64_t totalBytes = 0, freeBytes = 0, availableBytes = 0;
  uint64_t files = 0, freeFiles = 0;
};

// Of the file system that a directory is on.
Result<Space> spaceOf(const std::string& directory);

// FsStats, OstStats and TargetStatus of the wire have the same fields.
template <typename Builder>
void encodeSpace(const Space& space, Builder out) {
  out.setTotalBytes(space.totalBytes);
  out.setFreeBytes(space.freeBytes);
  out.setAvailableBytes(space.availableBytes);
  out.setFiles(space.files);
  out.setFreeFiles(space.freeFiles);
}
template <typename Reader>
Space decodeSpace(Reader in) {
  return {.totalBytes = in.getTotalBytes(),
          .freeBytes = in.getFreeBytes(),
          .availableBytes = in.getAvailableBytes(),
          .files = in.getFiles(),
          .freeFiles = in.getFreeFiles()};
}

}  // namespace trainfs
