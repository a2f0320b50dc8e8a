#include "find_format.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "fid.h"
#include "json_text.h"

namespace trainfs::tfs {
namespace {

// As -type takes it.
const char* typeLetter(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFBLK:
      return "b";
    case S_IFCHR:
      return "c";
    case S_IFDIR:
      return "d";
    case S_IFLNK:
      return "l";
    case S_IFIFO:
      return "p";
    case S_IFSOCK:
      return "s";
    default:
      return "f";
  }
}

std::string timeText(const timespec& time) {
  return jsonTime({.seconds = time.tv_sec, .nanoseconds = static_cast<uint32_t>(time.tv_nsec)});
}

std::string octalMode(mode_t mode) {
  char text[8];
  std::snprintf(text, sizeof text, "%04o", mode & 07777);
  return text;
}

}  // namespace

nlohmann::json foundJson(const std::string& path, const struct stat& attributes) {
  return {{"path", path},
          {"fid", formatFid(InodeId{attributes.st_ino})},
          {"type", typeLetter(attributes.st_mode)},
          {"mode", octalMode(attributes.st_mode)},
          {"links", attributes.st_nlink},
          {"uid", attributes.st_uid},
          {"gid", attributes.st_gid},
          {"size", attributes.st_size},
          {"allocated_bytes", attributes.st_blocks * 512},
          {"atime", timeText(attributes.st_atim)},
          {"mtime", timeText(attributes.st_mtim)},
          {"ctime", timeText(attributes.st_ctim)}};
}

}  // namespace trainfs::tfs
