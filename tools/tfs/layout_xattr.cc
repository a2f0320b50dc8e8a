#include "layout_xattr.h"

#include <sys/xattr.h>

#include <cstring>

#include "striping/layout_text.h"

namespace trainfs::tfs {
namespace {

Errno lastError() {
  bool elsewhere = errno == EOPNOTSUPP || errno == ENOSYS;
  return Errno(elsewhere ? ENOTTY : errno);
}

}  // namespace

Result<Layout> readLayout(const std::string& path, bool followSymlinks) {
  std::string text(striping::kLayoutTextBytesMax, '\0');
  auto* get = followSymlinks ? getxattr : lgetxattr;
  ssize_t length = get(path.c_str(), striping::kLayoutXattr, text.data(), text.size());
  if (length < 0) return lastError();
  text.resize(length);
  auto parsed = striping::parseLayout(text, striping::StateFields::kKeep);
  if (!parsed.error.empty()) return Errno(EPROTO);
  return parsed.layout;
}

Status writeLayout(const std::string& path, const Layout& layout) {
  std::string text = striping::formatLayout(layout);
  if (setxattr(path.c_str(), striping::kLayoutXattr, text.data(), text.size(), 0) == 0)
    return Done{};
  if (errno == ENOTEMPTY) return Errno(EEXIST);
  return lastError();
}

Status removeLayout(const std::string& path) {
  if (removexattr(path.c_str(), striping::kLayoutXattr) == 0 || errno == ENODATA) return Done{};
  return lastError();
}

std::string layoutError(int code) {
  switch (code) {
    case ENOTTY:
      return "not on a trainfs file system";
    case EEXIST:
      return "stripe already set";
    case EBUSY:
      return "another client is writing the file";
    case EINVAL:
      return "the layout was refused: does it name an OST that does not exist?";
    case EPROTO:
      return "the layout is damaged or of a newer version than this tfs";
    default:
      return std::strerror(code);
  }
}

}  // namespace trainfs::tfs
