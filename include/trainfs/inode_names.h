// The names of an inode, as the MDS tells them and the client hands them on. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainfs/types.h"

namespace trainfs {

// A name on the way through all of an inode's; the default is before the first.
struct NameCursor {
  uint64_t parent = 0, place = 0;
  friend bool operator==(const NameCursor&, const NameCursor&) = default;
};

struct InodeName {
  InodeId parent;
  std::string name;
  std::string path;  // from the directory that was asked for, beginning with '/'; empty: too long
};

inline constexpr size_t kNamesPerPage = 256;  // at most

struct NamesPage {
  std::vector<InodeName> names;
  bool end = true;
  NameCursor next;  // where to go on, unless this is the end
};

}  // namespace trainfs
