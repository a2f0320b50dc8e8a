// tfs df: how full each target is, and the file system as a whole.
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command.h"
#include "df_format.h"
#include "file_systems.h"
#include "json_text.h"

namespace trainfs::tfs {
namespace {

constexpr const char* kName = "df";

constexpr option kLongOptions[] = {
    {"human-readable", no_argument, nullptr, 'h'}, {"si", no_argument, nullptr, 'H'},
    {"inodes", no_argument, nullptr, 'i'},         {"lazy", no_argument, nullptr, 'l'},
    {"mdt", optional_argument, nullptr, 'm'},      {"ost", optional_argument, nullptr, 'o'},
    {"no-header", no_argument, nullptr, 'N'},      {"only-summary", no_argument, nullptr, 's'},
    {"output", required_argument, nullptr, 'u'},   {"pool", required_argument, nullptr, 'p'},
    {"verbose", no_argument, nullptr, 'v'},        {"json", no_argument, nullptr, kLongJson},
    {"help", no_argument, nullptr, kLongHelp},     {nullptr, 0, nullptr, 0}};
constexpr const char* kShortOptions = ":hHilm::Nso::p:u:v";

struct Request {
  DfOptions options;
  bool json = false, help = false;
  bool onlyMdts = false, onlyOsts = false;
};

std::string takeIndex(const OptionReader& reader, const char* kind,
                      std::optional<uint32_t>& index) {
  if (!reader.hasArgument()) return {};
  std::string text = reader.argument();
  char* end = nullptr;
  unsigned long value = std::strtoul(text.c_str(), &end, 0);
  if (text.empty() || text[0] == '-' || *end != '\0' || value >= 65536)
    return std::string("invalid ") + kind + " index '" + text + "'";
  index = static_cast<uint32_t>(value);
  return {};
}

std::string takeFields(const std::string& list, std::vector<DfField>& fields) {
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');) {
    DfField field{};
    if (!parseDfField(name, field))
      return "unknown field '" + name + "' for --output option; there are: " + dfFieldNames();
    fields.push_back(field);
  }
  return {};
}

std::string take(int option, const OptionReader& reader, Request& request) {
  DfOptions& options = request.options;
  switch (option) {
    case 'h':
      options.human = true;
      options.si = false;
      return {};
    case 'H':
      options.human = options.si = true;
      return {};
    case 'i':
      options.inodes = true;
      return {};
    case 'm':
      request.onlyMdts = true;
      return takeIndex(reader, "MDT", options.mdt);
    case 'o':
      request.onlyOsts = true;
      return takeIndex(reader, "OST", options.ost);
    case 'N':
      options.header = false;
      return {};
    case 's':
      options.onlySummary = true;
      return {};
    case 'u':
      return takeFields(reader.argument(), options.fields);
    case 'p':
      return "option -p is not supported: pools cannot be defined yet";
    case 'l':  // the MDS answers from what the OSTs told it: no OST is waited for
    case 'v':
      return {};
    case kLongJson:
      request.json = true;
      return {};
    default:
      request.help = true;
      return {};
  }
}

nlohmann::json toJson(const Mount& mount, const ClusterStatus& status) {
  nlohmann::json mdts = nlohmann::json::array(), osts = nlohmann::json::array();
  for (const TargetStatus& mdt : status.mdts) mdts.push_back(targetJson(status, "MDT", mdt));
  for (const TargetStatus& ost : status.osts) osts.push_back(targetJson(status, "OST", ost));
  TargetStatus sum = summarise(status);
  return {{"fsname", status.fsname},
          {"mounted_on", mount.point},
          {"mdts", mdts},
          {"osts", osts},
          {"summary",
           {{"total_bytes", sum.totalBytes},
            {"free_bytes", sum.freeBytes},
            {"available_bytes", sum.availableBytes},
            {"inodes", sum.files},
            {"free_inodes", sum.freeFiles}}}};
}

int run(int argc, char** argv) {
  Request request;
  std::string error;
  OptionReader reader(argc, argv, kShortOptions, kLongOptions);
  for (int option; (option = reader.next()) != -1 && error.empty();) {
    bool wrong = option == '?' || option == ':';
    error = wrong ? reader.complaint(option) : take(option, reader, request);
    if (request.help) return std::fputs(kDf.help, stdout), 0;
  }
  if (!error.empty()) return usageError(kName, error);
  DfOptions& options = request.options;
  if (request.onlyMdts != request.onlyOsts) {
    options.mdts = request.onlyMdts;
    options.osts = request.onlyOsts;
  }
  std::vector<std::string> paths(argv + reader.firstPositional(), argv + argc);
  nlohmann::json all = nlohmann::json::array();
  int result =
      forEachFileSystem(kName, paths, [&](const Mount& mount, const ClusterStatus& status) {
        if (!status.error.empty()) return unreachable(kName, mount, status);
        if (request.json)
          all.push_back(toJson(mount, status));
        else
          std::fputs(formatDf(status, mount.point, options).c_str(), stdout);
        return 0;
      });
  if (request.json) std::printf("%s\n", jsonBlock(all).c_str());
  return result;
}

constexpr const char* kHelp =
    R"(Usage: tfs df [OPTION]... [PATH]...
Shows how full each MDT and OST is, and the file system as a whole: of the file system that PATH lies on, or of
all that are mounted. Space of the file system is that of its OSTs.

  -h, --human-readable   16.3T: powers of 1024
  -H, --si               powers of 1000
  -i, --inodes           inodes (of MDTs) and objects (of OSTs) instead of space
  -m, --mdt[=INDEX]      MDTs only, or one (-m0)
  -o, --ost[=INDEX]      OSTs only, or one (-o3)
  -s, --only-summary     the last line only
  -N, --no-header        no column headings
  -u, --output=FIELDS    these columns: source,size,used,free,avail,pcent,itotal,iused,iavail,ipcent,target,state
      --json             as JSON
  -l, -v                 accepted for compatibility

The last column says if a target has run out of space (S) or inodes (I); an OST that the MDS has lost is an
"inactive device".

Examples:
  tfs df -h                                  all mounted trainfs file systems
  tfs df -i /mnt/trainfs                     inodes of one
  tfs df -o --output=source,avail -N /mnt/trainfs    for scripts: what each OST has left, in KiB
)";

}  // namespace

const Command kDf = {kName, "show how full the targets are", kHelp, run};

}  // namespace trainfs::tfs
