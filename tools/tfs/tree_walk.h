// A walk through directories that needs memory for the way down only, and few descriptors, however
// large the directories and however deep the tree: no directory is read whole. Symbolic links are
// not followed, also not where the walk starts.
#pragma once

#include <functional>
#include <string>

namespace trainfs::tfs {

struct Visit {
  const std::string& path;  // as it is printed: the start and what is below
  std::string name;         // its last component
  int directory;            // descriptor that `name` is relative to
  unsigned char type;       // DT_*, never DT_UNKNOWN
  unsigned depth;           // 0: the start
};

class TreeWalk {
 public:
  // `visit` is called for every file, directories before what is in them; true: go into it.
  // `complain` is told of what cannot be read.
  TreeWalk(std::function<bool(const Visit&)> visit,
           std::function<void(const std::string& path, int error)> complain)
      : visit_(std::move(visit)), complain_(std::move(complain)) {}

  void run(const std::string& start);

 private:
  struct Level;
  void descend(std::string& path, int directory, const std::string& name, unsigned depth);

  std::function<bool(const Visit&)> visit_;
  std::function<void(const std::string&, int)> complain_;
};

}  // namespace trainfs::tfs
