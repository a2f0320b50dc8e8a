#include "fuse_client/mount_options.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <map>
#include <sstream>
#include <string_view>

#include "fuse_client/mount_option_help.h"
#include "trainfs/logging.h"
#include "trainfs/metrics.h"

namespace trainfs::client {

namespace {

constexpr const char* kUsage =
    "usage: trainfs-client [-fnrsvwh] [--check] [-o OPTIONS] [--log-file FILE] [--log-level LEVEL] "
    "HOST[:PORT][,HOST...]:/FSNAME[/DIRECTORY] MOUNTPOINT\n"
    "Mounts a trainfs file system. See trainfs-client(8) and mount.trainfs(8).\n"
    "  -f            stay in the foreground\n"
    "  -v            say what of the kernel is in use, and why not\n"
    "  -s            ignore unknown mount options\n"
    "  -n            accepted for mount(8), without meaning\n"
    "  -r, -w        as -o ro, -o rw\n"
    "  --check       say whether the command line is right, and do nothing else\n"
    "  -o OPTIONS    mount options, separated by commas\n"
    "  --log-file FILE, --log-level trace|debug|info|warning|error|off\n"
    "  --version, --help\n";

// Options of mount(8) that mean nothing to the file system itself, or that FUSE always does that
// way.
constexpr std::string_view kIgnored[] = {"defaults",   "auto",        "noauto",
                                         "user",       "nouser",      "users",
                                         "nousers",    "owner",       "noowner",
                                         "group",      "nogroup",     "_netdev",
                                         "nofail",     "atime",       "relatime",
                                         "norelatime", "strictatime", "nostrictatime",
                                         "lazytime",   "nolazytime",  "default_permissions",
                                         "silent",     "loud",        "iversion",
                                         "noiversion", "mand",        "nomand",
                                         "diratime"};
// Passed on. suid and dev are what a mount starts from, so only their opposites change anything.
constexpr std::string_view kForKernel[] = {
    "suid",  "nosuid",  "dev",     "nodev",      "exec",      "noexec",     "sync",
    "async", "dirsync", "noatime", "nodiratime", "symfollow", "nosymfollow"};
// How the kernel shows a mount, which mount(8) hands back when it is to be changed.
constexpr std::string_view kShownPrefix[] = {
    "user_id=", "group_id=", "rootmode=", "fd=", "max_read=", "blksize="};
constexpr std::string_view kForKernelPrefix[] = {
    "context=", "fscontext=", "defcontext=", "rootcontext="};

template <typename Range>
bool contains(const Range& range, std::string_view text) {
  return std::find(std::begin(range), std::end(range), text) != std::end(range);
}

bool startsWithAny(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](auto prefix) { return text.starts_with(prefix); });
}

std::string parseNumber(std::string_view name, std::string_view text, uint32_t least, uint32_t most,
                        uint32_t& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
    return {};
  return "option " + std::string(name) + " takes a number from " + std::to_string(least) + " to " +
         std::to_string(most) + ", not '" + std::string(text) + "'";
}

std::string parseSeconds(std::string_view name, std::string_view text,
                         std::chrono::seconds& value) {
  uint32_t seconds = 0;
  auto wrong = parseNumber(name, text, 1, 86400, seconds);
  if (wrong.empty()) value = std::chrono::seconds(seconds);
  return wrong;
}

std::string parseUring(std::string_view text, MountOptions& options) {
  static const std::map<std::string_view, UringMode> kModes = {
      {"off", UringMode::kOff}, {"auto", UringMode::kAuto}, {"on", UringMode::kOn}};
  auto mode = kModes.find(text);
  if (mode == kModes.end())
    return "option uring takes auto, on or off, not '" + std::string(text) + "'";
  options.uring = mode->second;
  return {};
}

// Options of this program's own. nullopt: not one of them.
std::optional<std::string> parseOwn(std::string_view name, std::string_view value,
                                    MountOptions& options) {
  if (name == "soft") return options.soft = true, "";
  if (name == "hard") return options.soft = false, "";
  if (name == "allow_other") return options.allowOther = true, "";
  if (name == "noallow_other") return options.allowOther = false, "";
  if (name == "flock") return options.locking = Locking::kCluster, "";
  if (name == "localflock") return options.locking = Locking::kLocal, "";
  if (name == "noflock") return options.locking = Locking::kNone, "";
  if (name == "uring") return parseUring(value, options);
  if (name == "io_uring_q_depth") return parseNumber(name, value, 1, 1024, options.uringQueueDepth);
  if (name == "threads") return parseNumber(name, value, 1, 64, options.threads);
  if (name == "data_workers") return parseNumber(name, value, 1, 16, options.dataWorkers);
  if (name == "lanes") return parseNumber(name, value, 1, 8, options.lanes);
  if (name == "readahead_kb") return parseNumber(name, value, 0, 1 << 20, options.readaheadKib);
  if (name == "soft_timeout") return parseSeconds(name, value, options.softTimeout);
  if (name == "connect_timeout") return parseSeconds(name, value, options.connectTimeout);
  if (name == "log_file") return options.logFile = value, "";
  if (name == "metrics_listen") {
    options.metricsListen = value;
    bool right = !value.empty() && checkMetricsAddress(options.metricsListen).empty();
    return right ? "" : "option metrics_listen takes HOST:PORT, not '" + std::string(value) + "'";
  }
  if (name == "log_level") {
    if (!isLogLevel(std::string(value)))
      return "option log_level does not know '" + std::string(value) + "'";
    return options.logLevel = value, "";
  }
  return std::nullopt;
}

std::string parseOption(std::string_view option, bool sloppy, MountOptions& options) {
  if (option.empty() || contains(kIgnored, option) ||
      startsWithAny(option, {"x-", "X-", "comment="}))
    return {};
  if (option == "ro" || option == "rw") {
    options.readOnly = option == "ro";
    return {};
  }
  if (option == "remount") return options.remount = true, "";
  for (auto prefix : kShownPrefix)
    if (option.starts_with(prefix)) return {};
  bool forKernel = contains(kForKernel, option);
  for (auto prefix : kForKernelPrefix) forKernel |= option.starts_with(prefix);
  if (forKernel) {
    options.kernelOptions.emplace_back(option);
    return {};
  }
  auto equals = option.find('=');
  auto value = equals == option.npos ? std::string_view() : option.substr(equals + 1);
  if (auto wrong = parseOwn(option.substr(0, equals), value, options)) return *wrong;
  return sloppy ? std::string() : "unknown mount option '" + std::string(option) + "'";
}

}  // namespace

std::string parseSource(const std::string& source, MountOptions& options) {
  auto split = source.find(":/");
  if (split == source.npos || split == 0)
    return "'" + source +
           "' is no trainfs source: it has the form HOST[:PORT][,HOST...]:/FSNAME[/DIRECTORY]";
  options.source = source;
  std::string name;
  std::istringstream path(source.substr(split + 2));
  std::getline(path, options.fsname, '/');
  if (options.fsname.empty())
    return "'" + source + "' names no file system: it has the form HOST:/FSNAME[/DIRECTORY]";
  while (std::getline(path, name, '/')) {
    if (name == "." || name == "..")
      return "'" + source + "' goes by '" + name + "': say the directory itself";
    if (!name.empty()) options.directory.push_back(name);
  }
  std::string_view rest = std::string_view(source).substr(0, split);
  while (true) {
    auto comma = rest.find(',');
    std::string server(rest.substr(0, comma));
    HostPort address;
    if (!parseHostPort(server, kDefaultMdsPort, address) || address.port == 0)
      return "'" + server + "' in '" + source + "' is no HOST[:PORT]";
    options.servers.push_back(address);
    if (comma == rest.npos) return {};
    rest.remove_prefix(comma + 1);
  }
}

std::string parseOptionList(const std::string& list, bool sloppy, MountOptions& options) {
  // A value in double quotes, as SELinux contexts have it, may hold commas.
  std::string option;
  bool quoted = false;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '"') {
      quoted = !quoted;
    } else if (i == list.size() || (list[i] == ',' && !quoted)) {
      if (auto wrong = parseOption(option, sloppy, options); !wrong.empty()) return wrong;
      option.clear();
      continue;
    }
    option += list[i];
  }
  return {};
}

std::string optionList(const MountOptions& options) {
  auto number = [](uint64_t value) { return std::to_string(value); };
  static constexpr const char* kUringModes[] = {"off", "auto", "on"};
  static constexpr const char* kLockings[] = {"flock", "localflock", "noflock"};
  std::vector<std::pair<std::string, std::string>> all = {
      {options.soft ? "soft" : "hard", ""},
      {"soft_timeout", number(options.softTimeout.count())},
      {"connect_timeout", number(options.connectTimeout.count())},
      {options.allowOther ? "allow_other" : "noallow_other", ""},
      {kLockings[static_cast<int>(options.locking)], ""},
      {"uring", kUringModes[static_cast<int>(options.uring)]},
      {"data_workers", number(options.dataWorkers)},
      {"lanes", number(options.lanes)},
      {"readahead_kb", number(options.readaheadKib)},
      {"log_level", options.logLevel}};
  if (options.uringQueueDepth != 0)
    all.emplace_back("io_uring_q_depth", number(options.uringQueueDepth));
  if (options.threads != 0) all.emplace_back("threads", number(options.threads));
  if (!options.logFile.empty()) all.emplace_back("log_file", options.logFile);
  if (!options.metricsListen.empty()) all.emplace_back("metrics_listen", options.metricsListen);
  std::string list;
  for (auto& [name, value] : all)
    list += (list.empty() ? "" : ",") + name + (value.empty() ? "" : "=" + value);
  return list;
}

std::string checkRemount(const MountOptions& present, const MountOptions& wanted) {
  auto fixed = [](const std::string& option) {
    return option + " can be set when mounting only, not by remount";
  };
  std::pair<const char*, bool> same[] = {
      {"hard or soft", present.soft == wanted.soft},
      {"soft_timeout", present.softTimeout == wanted.softTimeout},
      {"allow_other", present.allowOther == wanted.allowOther},
      {"flock, localflock or noflock", present.locking == wanted.locking},
      {"uring", present.uring == wanted.uring},
      {"io_uring_q_depth", present.uringQueueDepth == wanted.uringQueueDepth},
      {"threads", present.threads == wanted.threads},
      {"data_workers", present.dataWorkers == wanted.dataWorkers},
      {"lanes", present.lanes == wanted.lanes},
      {"log_file", present.logFile == wanted.logFile},
      {"metrics_listen", present.metricsListen == wanted.metricsListen}};
  for (auto& [name, equal] : same)
    if (!equal) return fixed("option " + std::string(name));
  for (auto& option : wanted.kernelOptions)
    for (auto prefix : kForKernelPrefix)
      if (option.starts_with(prefix)) return fixed("option " + option);
  return {};
}

std::optional<MountUsage> parseMountOptions(int argc, const char* const* argv,
                                            MountOptions& options) {
  auto wrong = [](const std::string& text) {
    return MountUsage{kExitUsage, "trainfs-client: " + text + "\n" + kUsage};
  };
  std::vector<std::string> places;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    auto takesValue = [&](const char* name, std::string& value) {
      std::string assigned = std::string(name) + "=";
      if (argument.starts_with(assigned)) return value = argument.substr(assigned.size()), true;
      if (argument != name || i + 1 == argc) return false;
      return value = argv[++i], true;
    };
    std::string value;
    if (argument == "--check") {
      options.checkOnly = true;
      continue;
    }
    if (argument == "--help" || argument == "-h")
      return MountUsage{0, std::string(kUsage) + kMountOptionHelp};
    if (argument == "--version") return MountUsage{0, "trainfs-client " TRAINFS_VERSION "\n"};
    if (takesValue("--log-file", options.logFile) || takesValue("--log-level", options.logLevel))
      continue;
    if (takesValue("-o", value)) {
      options.lists.push_back(value);
    } else if (argument.starts_with("-o") && argument.size() > 2) {
      options.lists.push_back(argument.substr(2));
    } else if (argument.size() > 1 && argument[0] == '-' &&
               argument.find_first_not_of("fnrsvw", 1) == argument.npos) {
      options.foreground |= argument.find('f') != argument.npos;
      options.verbose |= argument.find('v') != argument.npos;
      options.sloppy |= argument.find('s') != argument.npos;
      if (argument.find('r') != argument.npos) options.lists.push_back("ro");
      if (argument.find('w') != argument.npos) options.lists.push_back("rw");
    } else if (argument.starts_with('-')) {
      return wrong("unknown argument '" + argument + "'");
    } else {
      places.push_back(argument);
    }
  }
  for (auto& list : options.lists)
    if (auto text = parseOptionList(list, options.sloppy, options); !text.empty())
      return wrong(text);
  if (!isLogLevel(options.logLevel)) return wrong("unknown log level '" + options.logLevel + "'");
  // Of a mount that is there, the place says all.
  if (options.remount && places.size() == 1) places.insert(places.begin(), "");
  if (places.size() != 2) return wrong("a source and a mount point are needed");
  if (!places[0].empty() || !options.remount)
    if (auto text = parseSource(places[0], options); !text.empty()) return wrong(text);
  options.mountPoint = places[1];
  return std::nullopt;
}

}  // namespace trainfs::client
