// tfs features: what of the kernel and of libraries a mount uses, and why not the rest.
#include <sys/stat.h>
#include <sys/utsname.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "command.h"
#include "json_text.h"
#include "mount_attributes.h"
#include "mounts.h"
#include "small_file.h"

namespace trainfs::tfs {
namespace {

void print(const std::string& title, const std::vector<FeatureLine>& features) {
  std::printf("%s:\n", title.c_str());
  for (const FeatureLine& feature : features) {
    bool figure = feature.state == "-";
    std::printf("  %-24s %s%s%s\n", feature.name.c_str(), figure ? "" : feature.state.c_str(),
                figure || feature.detail.empty() ? "" : ": ", feature.detail.c_str());
  }
}

nlohmann::json toJson(const std::vector<FeatureLine>& features) {
  nlohmann::json all = nlohmann::json::object();
  for (const FeatureLine& feature : features) {
    if (feature.state == "-")
      all[feature.name] = feature.detail;
    else
      all[feature.name] = {{"in_use", feature.state == "yes"}, {"detail", feature.detail}};
  }
  return all;
}

FeatureLine since(const char* name, const utsname& system, unsigned major, unsigned minor,
                  const char* what) {
  unsigned haveMajor = 0, haveMinor = 0;
  std::sscanf(system.release, "%u.%u", &haveMajor, &haveMinor);
  bool there = haveMajor > major || (haveMajor == major && haveMinor >= minor);
  return {
      name, there ? "yes" : "no",
      std::string(what) + " (Linux " + std::to_string(major) + "." + std::to_string(minor) + ")"};
}

// Without a mount: what this machine has, by the kernel's word or else its version.
std::vector<FeatureLine> machine() {
  utsname system{};
  uname(&system);
  std::vector<FeatureLine> features = {{"kernel", "-", system.release}};
  struct stat device{};
  bool fuse = stat("/dev/fuse", &device) == 0;
  features.push_back({"fuse", fuse ? "yes" : "no", fuse ? "/dev/fuse" : "there is no /dev/fuse"});
  auto uring = firstLineOf("/sys/module/fuse/parameters/enable_uring");
  if (uring.empty())
    features.push_back(
        {"fuse_over_io_uring", "no", "the kernel has none (Linux 6.14), or fuse is not loaded"});
  else
    features.push_back({"fuse_over_io_uring", uring == "Y" ? "yes" : "no",
                        uring == "Y" ? "switched on"
                                     : "off in /sys/module/fuse/parameters/enable_uring; a mount "
                                       "by root that wants it switches it on"});
  auto disabled = firstLineOf("/proc/sys/kernel/io_uring_disabled");
  bool allowed = disabled.empty() || disabled == "0";
  features.push_back({"io_uring", allowed ? "yes" : "no",
                      allowed ? "" : "kernel.io_uring_disabled is " + disabled});
  features.push_back(since("passthrough", system, 6, 9, "not used by this version"));
  features.push_back(since("epochs", system, 6, 16, "names are cached until they are recalled"));
  features.push_back(since("parallel_direct_writes", system, 6, 2, "several writers of one file"));
  features.push_back(since("mmap_of_direct_files", system, 6, 6, ""));
  auto pages = firstLineOf("/proc/sys/fs/fuse/max_pages_limit");
  features.push_back(
      {"max_pages_limit", "-", pages.empty() ? "256 (fixed before Linux 6.13)" : pages});
  return features;
}

int run(int argc, char** argv) {
  constexpr option kLongOptions[] = {{"machine", no_argument, nullptr, 'm'},
                                     {"json", no_argument, nullptr, kLongJson},
                                     {"help", no_argument, nullptr, kLongHelp},
                                     {nullptr, 0, nullptr, 0}};
  const char* name = kFeatures.name;
  bool json = false, machineOnly = false;
  OptionReader reader(argc, argv, ":hm", kLongOptions);
  for (int option; (option = reader.next()) != -1;) {
    if (option == '?' || option == ':') return usageError(name, reader.complaint(option));
    if (option == 'h' || option == kLongHelp) return std::fputs(kFeatures.help, stdout), 0;
    (option == 'm' ? machineOnly : json) = true;
  }
  auto mounts = trainfsMounts();
  std::vector<std::string> points;
  int result = 0;
  for (int i = reader.firstPositional(); i < argc; i++) {
    if (const Mount* mount = mountOf(mounts, argv[i]))
      points.push_back(mount->point);
    else
      result =
          failure(name, std::string("'") + argv[i] + "' is not on a mounted trainfs file system",
                  EOPNOTSUPP);
  }
  if (reader.firstPositional() == argc && !machineOnly)
    for (const Mount& mount : mounts) points.push_back(mount.point);
  nlohmann::json all = {{"machine", toJson(machine())}, {"mounts", nlohmann::json::array()}};
  if (!json && points.empty() && result == 0) print("this machine", machine());
  for (const std::string& point : points) {
    auto text = readMountAttribute(point, "features");
    if (!text) {
      result =
          failure(name, point + ": " + std::strerror(text.error().code()), text.error().code());
      continue;
    }
    auto features = parseFeatures(*text);
    if (json)
      all["mounts"].push_back({{"mounted_on", point}, {"features", toJson(features)}});
    else
      print(point, features);
  }
  if (json) std::printf("%s\n", jsonBlock(all).c_str());
  return result;
}

}  // namespace

const Command kFeatures = {"features",
                           "show which kernel features a mount uses, and why not others",
                           R"(Usage: tfs features [--machine] [--json] [PATH]...
Shows which features of the kernel and of libfuse the mounts that PATHs lie on, or all, use, and why others are not
in use. The mount itself says it; no server is asked. Without a mount: what this machine offers.

  -m, --machine          what this machine offers, even if something is mounted
      --json             as JSON: machine and mounts; each feature has in_use and detail, figures are strings

Examples:
  tfs features
  tfs features --json /mnt/trainfs
)",
                           run};

}  // namespace trainfs::tfs
