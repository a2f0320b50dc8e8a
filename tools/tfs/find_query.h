// What `tfs find` looks for: the command line as tests on one file after the other. Pure, but for
// the names of users and groups and the times of files that the command line refers to.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainfs/types.h"

namespace trainfs::tfs {

// A file that is looked at. What costs a question is asked only if a test needs it; nothing: it
// cannot be told (the walk has complained).
struct Candidate {
  std::string name;
  unsigned char type = 0;  // DT_*
  std::function<const struct stat*()> attributes;
  std::function<const Layout*()> layout;       // without components: none of its own
  std::function<std::optional<bool>()> empty;  // a directory
};

// Nothing: what the test needs cannot be told. Such a file matches neither a test nor its negation.
using Test = std::function<std::optional<bool>(const Candidate&)>;

struct FindQuery {
  std::string error;  // not empty: the command line is wrong, and how
  bool help = false;
  std::vector<std::string> paths;
  std::vector<Test> tests;
  unsigned depthMin = 0, depthMax = ~0u;
  bool nul = false;
};

struct FindContext {
  time_t now = 0;
  // The index of an OST of that name (trainfs-OST0001, with or without _UUID).
  std::function<std::optional<uint32_t>(const std::string&)> ostIndex;
};
FindQuery parseFind(int argc, char** argv, const FindContext& context);

bool matches(const FindQuery& query, const Candidate& candidate);

// "+3", "-3", "3": sign '+', '-' or '='; what follows.
struct Signed {
  char sign = '=';
  std::string text;
};
Signed splitSign(const std::string& text);

}  // namespace trainfs::tfs
