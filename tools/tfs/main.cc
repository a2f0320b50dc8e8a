// tfs: the admin tool of trainfs, for hands and scripts that know lfs.
#include <cstdio>
#include <cstring>

#include "command.h"

using namespace trainfs::tfs;

namespace {

const Command* const kCommands[] = {&kSetstripe,
                                    &kGetstripe,
                                    &kFind,
                                    &kPath2fid,
                                    &kFid2path,
                                    &kDf,
                                    &kOsts,
                                    &kMdts,
                                    &kCheck,
                                    &kFeatures,
                                    &kStats,
                                    &kChangelog,
                                    &kChangelogRegister,
                                    &kChangelogDeregister,
                                    &kChangelogClear};

const Command* find(const char* name) {
  for (const Command* command : kCommands)
    if (std::strcmp(command->name, name) == 0) return command;
  return nullptr;
}

void printHelp(FILE* out) {
  std::fputs(
      "Usage: tfs COMMAND [OPTION]... [ARGUMENT]...\n"
      "Looks after a trainfs file system. Commands, options and output are those of Lustre's "
      "lfs.\n\n",
      out);
  for (const Command* command : kCommands)
    std::fprintf(out, "  %-21s %s\n", command->name, command->summary);
  std::fputs(
      "  help                  how to use one of them: tfs help setstripe\n"
      "\n"
      "First steps:\n"
      "  tfs df -h                            how full the file system is\n"
      "  tfs setstripe -c 4 DIRECTORY         new files in it go over 4 OSTs\n"
      "  tfs getstripe FILE                   where a file's data is\n"
      "  tfs find DIRECTORY -size +1G -ost 3  large files with data on OST 3\n"
      "  tfs check all                        are the servers there?\n"
      "  tfs stats --interval 1               what the mounts are doing\n"
      "More: tfs COMMAND --help, man tfs\n",
      out);
}

int help(const char* name) {
  if (name == nullptr) return printHelp(stdout), 0;
  const Command* command = find(name);
  if (command == nullptr) {
    std::fprintf(stderr, "tfs help: there is no command '%s'\n", name);
    return kExitUsage;
  }
  return std::fputs(command->help, stdout), 0;
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const char* name = argc > 1 ? argv[1] : "";
  if (std::strcmp(name, "help") == 0) return help(argc > 2 ? argv[2] : nullptr);
  if (std::strcmp(name, "--help") == 0 || std::strcmp(name, "-h") == 0) return help(nullptr);
  if (std::strcmp(name, "--version") == 0) return std::puts("tfs (trainfs) " TRAINFS_VERSION), 0;
  if (name[0] == '\0') return printHelp(stderr), kExitUsage;
  const Command* command = find(name);
  if (command == nullptr) {
    std::fprintf(stderr, "tfs: there is no command '%s'\nTry 'tfs --help'.\n", name);
    return kExitUsage;
  }
  return command->run(argc - 1, argv + 1);
}
