// What the sub-commands of tfs share: how they are listed, how they complain, how they exit.
// Exit codes as lfs: 0, 4 for a wrong command line, else the errno of the first failure.
//
// Command lines are read with getopt_long(3), as lfs reads them: only so do `-E` options in order,
// attached optional arguments (`-I2`, `--ost=0`) and abbreviated long options mean the same to
// both.
#pragma once

#include <getopt.h>

#include <string>

namespace trainfs::tfs {

inline constexpr int kExitUsage = 4;

struct Command {
  const char* name;
  const char* summary;
  const char* help;  // printed by --help: usage, options, examples
  int (*run)(int argc, char** argv);
};

extern const Command kSetstripe, kGetstripe, kFind, kPath2fid, kFid2path, kDf, kOsts, kMdts, kCheck,
    kFeatures, kStats, kChangelog, kChangelogRegister, kChangelogDeregister, kChangelogClear;

// "tfs NAME: WHAT" and where help is, on stderr. Returns kExitUsage.
int usageError(const char* command, const std::string& what);

// "tfs NAME: WHAT" on stderr. Returns `code`, an errno.
int failure(const char* command, const std::string& what, int code);
void warning(const char* command, const std::string& what);

// getopt_long on a new command line. Options start with ':' so that a missing argument is told
// apart.
class OptionReader {
 public:
  OptionReader(int argc, char** argv, const char* shortOptions, const option* longOptions);
  // The next option, or -1; '?' and ':' are errors that `complaint` words.
  int next();
  std::string argument() const { return optarg == nullptr ? "" : optarg; }
  bool hasArgument() const { return optarg != nullptr; }
  std::string complaint(int outcome) const;
  std::string word() const { return argv_[optind - 1]; }  // what the option was read from
  // The first argument that is not an option, once next() has given -1.
  int firstPositional() const { return optind; }

 private:
  int argc_;
  char** argv_;
  const char* shortOptions_;
  const option* longOptions_;
};

// Options without a letter.
enum LongOption : int {
  kLongJson = 256,
  kLongHelp,
  kLongMode,
  kLongCopy,
  kLongUnsupported,
  kLongComponentCount,
  kLongComponentFlags,
  kLongComponentStart,
  kLongHexIndex,
  kLongNoFollow,
};

}  // namespace trainfs::tfs
