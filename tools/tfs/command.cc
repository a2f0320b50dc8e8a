#include "command.h"

#include <cstdio>

namespace trainfs::tfs {

int usageError(const char* command, const std::string& what) {
  std::fprintf(stderr, "tfs %s: %s\nTry 'tfs %s --help'.\n", command, what.c_str(), command);
  return kExitUsage;
}

int failure(const char* command, const std::string& what, int code) {
  std::fprintf(stderr, "tfs %s: %s\n", command, what.c_str());
  return code;
}

void warning(const char* command, const std::string& what) {
  failure(command, what, 0);
}

OptionReader::OptionReader(int argc, char** argv, const char* shortOptions,
                           const option* longOptions)
    : argc_(argc), argv_(argv), shortOptions_(shortOptions), longOptions_(longOptions) {
  opterr = 0;
  optind = 0;  // glibc: also forgets an earlier command line
}

int OptionReader::next() {
  return getopt_long(argc_, argv_, shortOptions_, longOptions_, nullptr);
}

std::string OptionReader::complaint(int outcome) const {
  std::string word = argv_[optind - 1];
  if (outcome == ':') return "option '" + word + "' needs a value";
  // Of several letters in one word, name the one that is meant.
  if (optopt > 0 && optopt < 256 && word.rfind("--", 0) != 0)
    word = std::string("-") + static_cast<char>(optopt);
  return "unrecognized option '" + word + "'";
}

}  // namespace trainfs::tfs
