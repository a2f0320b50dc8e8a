// tfs osts, tfs mdts: which targets the file system has.
#include <cctype>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "command.h"
#include "file_systems.h"
#include "json_text.h"

namespace trainfs::tfs {
namespace {

constexpr option kLongOptions[] = {{"verbose", no_argument, nullptr, 'v'},
                                   {"json", no_argument, nullptr, kLongJson},
                                   {"help", no_argument, nullptr, kLongHelp},
                                   {nullptr, 0, nullptr, 0}};

void print(const ClusterStatus& status, const char* kind, bool verbose) {
  bool mdts = kind[0] == 'M';
  std::printf("%s:\n", mdts ? "MDTS" : "OBDS");
  for (const TargetStatus& target : mdts ? status.mdts : status.osts) {
    std::printf("%u: %s_UUID %s", target.index,
                targetLabel(status.fsname, kind, target.index).c_str(),
                target.active ? "ACTIVE" : "INACTIVE");
    if (verbose) std::printf(" %s %s", target.address.c_str(), target.uuid.c_str());
    std::printf("\n");
  }
}

int list(const Command& command, const char* kind, int argc, char** argv) {
  bool verbose = false, json = false;
  OptionReader reader(argc, argv, ":hv", kLongOptions);
  for (int option; (option = reader.next()) != -1;) {
    if (option == '?' || option == ':') return usageError(command.name, reader.complaint(option));
    if (option == 'h' || option == kLongHelp) return std::fputs(command.help, stdout), 0;
    (option == 'v' ? verbose : json) = true;
  }
  std::vector<std::string> paths(argv + reader.firstPositional(), argv + argc);
  nlohmann::json all = nlohmann::json::array();
  int result =
      forEachFileSystem(command.name, paths, [&](const Mount& mount, const ClusterStatus& status) {
        if (!status.error.empty()) return unreachable(command.name, mount, status);
        if (!json) return print(status, kind, verbose), 0;
        for (const TargetStatus& target : kind[0] == 'M' ? status.mdts : status.osts)
          all.push_back(targetJson(status, kind, target));
        return 0;
      });
  if (json) std::printf("%s\n", jsonBlock(all).c_str());
  return result;
}

int runOsts(int argc, char** argv) {
  return list(kOsts, "OST", argc, argv);
}
int runMdts(int argc, char** argv) {
  return list(kMdts, "MDT", argc, argv);
}

}  // namespace

const Command kOsts = {"osts", "list the object storage targets",
                       R"(Usage: tfs osts [-v] [--json] [PATH]...
Lists the OSTs of the file system that PATH lies on, or of all that are mounted: index, name, and whether the MDS
hears from it. The index is what setstripe -i and -o take and getstripe shows.

  -v, --verbose          also address and identifier
      --json             as JSON, with space and objects

Example:
  tfs osts /mnt/trainfs
)",
                       runOsts};

const Command kMdts = {"mdts", "list the metadata targets",
                       R"(Usage: tfs mdts [-v] [--json] [PATH]...
Lists the MDTs of the file system that PATH lies on, or of all that are mounted.

  -v, --verbose          also address and identifier
      --json             as JSON, with space and inodes

Example:
  tfs mdts /mnt/trainfs
)",
                       runMdts};

}  // namespace trainfs::tfs
