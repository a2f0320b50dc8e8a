#include "fid.h"

#include <cinttypes>
#include <cstdio>

#include "layout_format.h"

namespace trainfs::tfs {

std::string formatFid(InodeId inode) {
  return "[" + fileFid(inode) + "]";
}

bool parseFid(const std::string& text, InodeId& inode) {
  std::string inner = text;
  if (inner.size() > 1 && inner.front() == '[' && inner.back() == ']')
    inner = inner.substr(1, inner.size() - 2);
  uint64_t high = 0, low = 0, version = 0;
  int length = -1;
  if (inner.find_first_not_of("0123456789abcdefABCDEFxX:") != inner.npos) return false;
  std::sscanf(inner.c_str(), "%" SCNx64 ":%" SCNx64 ":%" SCNx64 "%n", &high, &low, &version,
              &length);
  if (length != static_cast<int>(inner.size())) return false;
  if (high > 0xffffffff || low > 0xffffffff || version != 0) return false;
  inode = {high << 32 | low};
  return inode != kNoInode;
}

}  // namespace trainfs::tfs
