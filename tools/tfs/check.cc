// tfs check: do the servers answer? Of an OST both: does the MDS hear from it, and can this node
// reach its ports.
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "command.h"
#include "file_systems.h"
#include "json_text.h"

namespace trainfs::tfs {
namespace {

constexpr const char* kName = "check";

constexpr option kLongOptions[] = {{"json", no_argument, nullptr, kLongJson},
                                   {"help", no_argument, nullptr, kLongHelp},
                                   {nullptr, 0, nullptr, 0}};

struct Kinds {
  bool osts = false, mdts = false, mgts = false;
};

bool parseKinds(const std::string& word, Kinds& kinds) {
  bool all = word == "all" || word == "servers";
  kinds.osts = all || word == "osts";
  kinds.mdts = all || word == "mdts" || word == "mds";
  kinds.mgts = all || word == "mgts";
  return kinds.osts || kinds.mdts || kinds.mgts;
}

struct Finding {
  std::string name;
  std::string reason;  // why it is inactive; empty: it is not
};

std::vector<Finding> checkOsts(const ClusterStatus& status) {
  std::map<uint32_t, std::string> refused;
  auto answers = probe(status.dataPorts);
  for (size_t i = 0; i < answers.size(); i++) {
    const DataPort& port = status.dataPorts[i];
    if (!answers[i].empty() && refused[port.ost].empty())
      refused[port.ost] = port.host + ":" + std::to_string(port.port) + ": " + answers[i];
  }
  std::vector<Finding> findings;
  for (const TargetStatus& ost : status.osts) {
    std::string reason = refused[ost.index];
    if (!ost.active)
      reason = "the MDS does not hear from it" + (reason.empty() ? "" : "; " + reason);
    findings.push_back({targetLabel(status.fsname, "OST", ost.index) + "-osc", reason});
  }
  return findings;
}

std::vector<Finding> examine(const Kinds& kinds, const Mount& mount, const ClusterStatus& status) {
  std::vector<Finding> findings;
  bool reached = status.error.empty();
  if (kinds.osts && reached) findings = checkOsts(status);
  if (kinds.mdts && reached)
    for (const TargetStatus& mdt : status.mdts)
      findings.push_back({targetLabel(status.fsname, "MDT", mdt.index) + "-mdc",
                          mdt.active ? "" : "the first MDS does not hear from it"});
  // The cluster map is MDT0's: without it nothing else is known.
  if (kinds.mdts && !reached)
    findings.push_back({targetLabel(mount.fsname, "MDT", 0) + "-mdc", status.error});
  if (kinds.mgts)
    findings.push_back(
        {"MGC" + (reached ? status.server : mount.source.substr(0, mount.source.find(":/"))),
         status.error});
  return findings;
}

int report(const std::vector<Finding>& findings, nlohmann::json* all) {
  int result = 0;
  for (const Finding& finding : findings) {
    bool active = finding.reason.empty();
    if (!active) result = ENOTCONN;
    if (all != nullptr)
      all->push_back({{"name", finding.name}, {"active", active}, {"reason", finding.reason}});
    else if (active)
      std::printf("%s active.\n", finding.name.c_str());
    else
      std::printf("%s inactive: %s.\n", finding.name.c_str(), finding.reason.c_str());
  }
  return result;
}

int run(int argc, char** argv) {
  bool json = false;
  OptionReader reader(argc, argv, ":h", kLongOptions);
  for (int option; (option = reader.next()) != -1;) {
    if (option == '?' || option == ':') return usageError(kName, reader.complaint(option));
    if (option != kLongJson) return std::fputs(kCheck.help, stdout), 0;
    json = true;
  }
  std::vector<std::string> words(argv + reader.firstPositional(), argv + argc);
  if (words.empty()) return usageError(kName, "server type must be specified");
  Kinds kinds;
  if (!parseKinds(words[0], kinds))
    return usageError(kName, "unrecognized option '" + words[0] + "'");
  words.erase(words.begin());
  nlohmann::json all = nlohmann::json::array();
  int result =
      forEachFileSystem(kName, words, [&](const Mount& mount, const ClusterStatus& status) {
        int code = report(examine(kinds, mount, status), json ? &all : nullptr);
        bool silent = !status.error.empty() && !kinds.mdts && !kinds.mgts;
        return silent ? unreachable(kName, mount, status) : code;
      });
  if (json) std::printf("%s\n", jsonBlock(all).c_str());
  return result;
}

constexpr const char* kHelp =
    R"(Usage: tfs check [--json] {osts|mdts|mgts|all|servers} [PATH]...
Asks the servers of the file system that PATH lies on, or of all that are mounted, whether they are there. Each OST
is tried twice: does the MDS hear from it, and do its data ports accept connections from this node. Takes at most
5 seconds for the MDS and 5 for the OSTs. Exits with 0 only if all are active.

      --json             as JSON

Examples:
  tfs check all /mnt/trainfs
  tfs check osts
)";

}  // namespace

const Command kCheck = {kName, "see whether the servers answer", kHelp, run};

}  // namespace trainfs::tfs
