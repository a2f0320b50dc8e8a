// tfs path2fid, tfs fid2path: between names and what they name.
#include <sys/stat.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "command.h"
#include "fid.h"
#include "json_text.h"
#include "mount_attributes.h"
#include "mounts.h"

namespace trainfs::tfs {
namespace {

std::string namesError(int code) {
  switch (code) {
    case EPERM:
      return "only the superuser may ask for names";
    case ESTALE:
      return "there is no such file";
    case ENOTTY:
      return "the mount does not tell names: not its top directory, or an older trainfs-client";
    default:
      return std::strerror(code);
  }
}

// ---- path2fid ----

struct PathRequest {
  bool parents = false, json = false;
  std::vector<Mount> mounts;
};

int printFid(const std::string& path, const PathRequest& request, bool several,
             nlohmann::json& all) {
  const char* name = kPath2fid.name;
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0)
    return failure(name, "'" + path + "': " + std::strerror(errno), errno);
  const Mount* mount = mountOf(request.mounts, path);
  if (mount == nullptr)
    return failure(name, "'" + path + "' is not on a mounted trainfs file system", ENOTTY);
  InodeId inode{status.st_ino};
  std::vector<NameOf> names;
  if (request.parents) {
    auto found = readNames(mount->point, inode);
    if (!found)
      return failure(name, "'" + path + "': " + namesError(found.error().code()),
                     found.error().code());
    names = *std::move(found);
  }
  nlohmann::json parents = nlohmann::json::array();
  std::string line;
  for (const NameOf& at : names) {
    if (at.parent == kNoInode) continue;
    parents.push_back({{"fid", formatFid(at.parent)}, {"name", at.name}});
    line += (line.empty() ? "" : "\t") + formatFid(at.parent) + "/" + at.name;
  }
  if (request.json) {
    nlohmann::json entry = {{"path", path}, {"fid", formatFid(inode)}};
    if (request.parents) entry["parents"] = parents;
    all.push_back(entry);
    return 0;
  }
  if (!request.parents) line = formatFid(inode);
  std::printf("%s%s%s\n", several ? path.c_str() : "", several ? ": " : "", line.c_str());
  return 0;
}

int runPath2fid(int argc, char** argv) {
  constexpr option kLongOptions[] = {{"parents", no_argument, nullptr, 'p'},
                                     {"json", no_argument, nullptr, kLongJson},
                                     {"help", no_argument, nullptr, kLongHelp},
                                     {nullptr, 0, nullptr, 0}};
  PathRequest request;
  OptionReader reader(argc, argv, ":hp", kLongOptions);
  for (int option; (option = reader.next()) != -1;) {
    if (option == '?' || option == ':') return usageError(kPath2fid.name, reader.complaint(option));
    if (option == 'h' || option == kLongHelp) return std::fputs(kPath2fid.help, stdout), 0;
    (option == 'p' ? request.parents : request.json) = true;
  }
  std::vector<std::string> paths(argv + reader.firstPositional(), argv + argc);
  if (paths.empty()) return usageError(kPath2fid.name, "PATH must be specified");
  request.mounts = trainfsMounts();
  nlohmann::json all = nlohmann::json::array();
  int result = 0;
  for (const std::string& path : paths) {
    int code = printFid(path, request, paths.size() > 1, all);
    if (result == 0) result = code;
  }
  if (request.json) std::printf("%s\n", jsonBlock(all).c_str());
  return result;
}

// ---- fid2path ----

struct FidRequest {
  bool printFid = false, nameOnly = false, nul = false, json = false;
  std::string point;
};

std::string shown(const NameOf& name, const FidRequest& request) {
  if (request.nameOnly) return name.parent == kNoInode ? "/" : name.name;
  return request.point + (name.path == "/" ? "" : name.path);
}

int printPaths(const std::string& text, const FidRequest& request, nlohmann::json& all) {
  const char* name = kFid2path.name;
  InodeId inode;
  if (!parseFid(text, inode))
    return failure(name, "'" + text + "' is not a FID: [0x0:0x2:0x0]", EINVAL);
  auto names = readNames(request.point, inode);
  if (!names)
    return failure(name, text + ": " + namesError(names.error().code()), names.error().code());
  if (names->empty()) return failure(name, text + ": it is not below " + request.point, ENOENT);
  int result = 0;
  nlohmann::json paths = nlohmann::json::array();
  for (const NameOf& found : *names) {
    if (found.path.empty() && !request.nameOnly) {
      result = failure(name, text + ": a path is longer than 16 KiB", ENAMETOOLONG);
      continue;
    }
    auto path = shown(found, request);
    paths.push_back(path);
    if (request.json) continue;
    if (request.printFid) std::printf("%s ", formatFid(inode).c_str());
    std::printf("%s%c", path.c_str(), request.nul ? '\0' : '\n');
  }
  if (request.json) all.push_back({{"fid", formatFid(inode)}, {"paths", paths}});
  return result;
}

// A mount by a path on it, or by the file system's name.
std::string findMount(const std::string& where) {
  auto mounts = trainfsMounts();
  for (const Mount& mount : mounts)
    if (mount.fsname == where) return mount.point;
  const Mount* mount = mountOf(mounts, where);
  return mount == nullptr ? "" : mount->point;
}

int runFid2path(int argc, char** argv) {
  constexpr option kLongOptions[] = {
      {"print-fid", no_argument, nullptr, 'f'},  {"name", no_argument, nullptr, 'n'},
      {"print0", no_argument, nullptr, '0'},     {"json", no_argument, nullptr, kLongJson},
      {"help", no_argument, nullptr, kLongHelp}, {nullptr, 0, nullptr, 0}};
  const char* name = kFid2path.name;
  FidRequest request;
  OptionReader reader(argc, argv, ":hfn0", kLongOptions);
  for (int option; (option = reader.next()) != -1;) {
    if (option == '?' || option == ':') return usageError(name, reader.complaint(option));
    if (option == 'h' || option == kLongHelp) return std::fputs(kFid2path.help, stdout), 0;
    (option == 'f'   ? request.printFid
     : option == 'n' ? request.nameOnly
     : option == '0' ? request.nul
                     : request.json) = true;
  }
  std::vector<std::string> words(argv + reader.firstPositional(), argv + argc);
  if (words.size() < 2) return usageError(name, "a mount and a FID must be specified");
  request.point = findMount(words[0]);
  if (request.point.empty())
    return failure(name, "'" + words[0] + "' is neither a mounted file system nor a path on one",
                   ENODEV);
  nlohmann::json all = nlohmann::json::array();
  int result = 0;
  for (size_t i = 1; i < words.size(); i++) {
    int code = printPaths(words[i], request, all);
    if (result == 0) result = code;
  }
  if (request.json) std::printf("%s\n", jsonBlock(all).c_str());
  return result;
}

}  // namespace

const Command kPath2fid = {"path2fid", "show the FID of a file",
                           R"(Usage: tfs path2fid [--parents] [--json] PATH...
Prints the FID of each PATH, which stays the same whatever the file is renamed to. A symbolic link is itself.

  -p, --parents          instead, for each hard link, the FID of its directory and its name there (superuser only)
      --json             as JSON: path, fid, and with --parents fid and name of each

Examples:
  tfs path2fid /mnt/trainfs/corpus.bin
  tfs path2fid --parents /mnt/trainfs/corpus.bin    all its names
)",
                           runPath2fid};

const Command kFid2path = {"fid2path", "show the paths of a FID",
                           R"(Usage: tfs fid2path [OPTION]... FSNAME|PATH FID...
Prints every path (hard link) of the file or directory that has that FID, in the file system FSNAME or the one
that PATH lies on, which must be mounted here. Brackets around a FID may be left out. Superuser only, because it
sees past the permissions of directories.

  -f, --print-fid        the FID before each path
  -n, --name             the last component of each path only
  -0, --print0           a NUL behind each path instead of a newline
      --json             as JSON: fid, paths

Examples:
  tfs fid2path trainfs [0x0:0x2a:0x0]
  tfs fid2path /mnt/trainfs 0x0:0x2a:0x0 0x0:0x2b:0x0
)",
                           runFid2path};

}  // namespace trainfs::tfs
