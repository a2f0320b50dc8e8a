// The command line of `tfs setstripe` as a layout. Pure.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "trainfs/types.h"

namespace trainfs::tfs {

struct SetstripeRequest {
  std::string error;  // not empty: the command line is wrong, and how
  bool help = false;
  bool remove = false;             // -d
  std::string copyFrom;            // --copy: the layout of this path
  Layout layout;                   // no components: nothing was asked for but the default
  mode_t mode = 0666;              // of a new file, before the umask
  std::vector<std::string> pools;  // named, to be warned about
  std::vector<std::string> paths;
};

SetstripeRequest parseSetstripe(int argc, char** argv);

}  // namespace trainfs::tfs
