#include "trainfs/space.h"

#include <sys/statvfs.h>

#include <cerrno>

namespace trainfs {

Result<Space> spaceOf(const std::string& directory) {
  struct statvfs fs{};
  if (statvfs(directory.c_str(), &fs) != 0) return Errno(errno);
  return Space{.totalBytes = fs.f_blocks * fs.f_frsize,
               .freeBytes = fs.f_bfree * fs.f_frsize,
               .availableBytes = fs.f_bavail * fs.f_frsize,
               .files = fs.f_files,
               .freeFiles = fs.f_ffree};
}

}  // namespace trainfs
