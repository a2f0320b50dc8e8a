// What `tfs find` looks for: its command line, taken apart. As pure as its tests.
#pragma once

#include <string>
#include <vector>

#include "find_tests.h"

namespace trainfs::tfs {

struct FindQuery {
  std::string error;  // not empty: the command line is wrong, and how
  bool help = false;
  std::vector<std::string> paths;
  std::vector<Test> tests;
  unsigned depthMin = 0, depthMax = ~0u;
  bool nul = false, json = false;
};

FindQuery parseFind(int argc, char** argv, const FindContext& context);

bool matches(const FindQuery& query, const Candidate& candidate);

}  // namespace trainfs::tfs
