// The command line of `tfs getstripe`. Pure.
#pragma once

#include <string>
#include <vector>

#include "layout_format.h"

namespace trainfs::tfs {

struct GetstripeRequest {
  std::string error;  // not empty: the command line is wrong, and how
  bool help = false;
  Selection selection;
  int depthMax = 1;  // of directories gone into: 0 none, 1 the ones named, -1 all below
  bool followSymlinks = true;
  bool mdtIndex = false;
  bool json = false;
  std::vector<std::string> paths;
};

GetstripeRequest parseGetstripe(int argc, char** argv);

}  // namespace trainfs::tfs
