// tfs find: looks for files by name, attributes and layout.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "cluster.h"
#include "command.h"
#include "file_systems.h"
#include "find_format.h"
#include "find_query.h"
#include "json_text.h"
#include "layout_xattr.h"
#include "tree_walk.h"

namespace trainfs::tfs {
namespace {

constexpr int kExitUnread = 1;  // as find: something could not be read

// The directory as one that lgetxattr can be told, whatever the length of the whole path.
std::string pathOf(const Visit& visit) {
  if (visit.directory == AT_FDCWD) return visit.path;
  return "/proc/self/fd/" + std::to_string(visit.directory) + "/" + visit.name;
}

class Find {
 public:
  explicit Find(FindQuery query) : query_(std::move(query)) {}

  int run() {
    TreeWalk walk([this](const Visit& visit) { return look(visit); },
                  [this](const std::string& path, int error) { complain(path, error); });
    for (const std::string& path : query_.paths) walk.run(path);
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      return failure("find", "cannot write", EIO);
    return unread_ ? kExitUnread : 0;
  }

 private:
  void complain(const std::string& path, int error) {
    failure("find", "'" + path + "': " + std::strerror(error), error);
    unread_ = true;
  }

  bool look(const Visit& visit) {
    if (visit.depth >= query_.depthMin) {
      auto candidate = examine(visit);
      if (matches(query_, candidate)) print(visit);
    }
    return visit.depth < query_.depthMax;
  }

  void print(const Visit& visit) {
    if (!query_.json) {
      std::fwrite(visit.path.data(), 1, visit.path.size(), stdout);
      std::fputc(query_.nul ? '\0' : '\n', stdout);
    } else if (auto* known = attributes(visit)) {
      std::printf("%s\n", jsonLine(foundJson(visit.path, *known)).c_str());
    }
  }

  // What is asked is kept for the other tests, until the next file.
  Candidate examine(const Visit& visit) {
    haveAttributes_ = haveLayout_ = false;
    return {.name = visit.name,
            .type = visit.type,
            .attributes = [this, &visit] { return attributes(visit); },
            .layout = [this, &visit] { return layout(visit); },
            .empty = [this, &visit] { return empty(visit); }};
  }

  const struct stat* attributes(const Visit& visit) {
    if (haveAttributes_) return attributesKnown_ ? &attributes_ : nullptr;
    haveAttributes_ = true;
    const char* name = visit.directory == AT_FDCWD ? visit.path.c_str() : visit.name.c_str();
    attributesKnown_ = fstatat(visit.directory, name, &attributes_, AT_SYMLINK_NOFOLLOW) == 0;
    if (attributesKnown_) return &attributes_;
    if (errno != ENOENT || visit.depth == 0) complain(visit.path, errno);
    return nullptr;
  }

  const Layout* layout(const Visit& visit) {
    if (haveLayout_) return layoutKnown_ ? &layout_ : nullptr;
    haveLayout_ = true;
    auto read = readLayout(pathOf(visit), false);
    layoutKnown_ = read.ok() || read.error() == Errno(ENODATA);
    layout_ = read.ok() ? *std::move(read) : Layout{};
    if (layoutKnown_) return &layout_;
    int code = read.error().code();
    if (code == ENOENT) return nullptr;  // removed meanwhile
    failure("find", "'" + visit.path + "': " + layoutError(code), code);
    unread_ = true;
    return nullptr;
  }

  std::optional<bool> empty(const Visit& visit) {
    const char* name = visit.directory == AT_FDCWD ? visit.path.c_str() : visit.name.c_str();
    int fd = openat(visit.directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR* directory = fd < 0 ? nullptr : fdopendir(fd);
    if (directory == nullptr) {
      complain(visit.path, errno);
      if (fd >= 0) close(fd);
      return std::nullopt;
    }
    bool any = false;
    for (const dirent* entry; !any && (entry = readdir(directory)) != nullptr;)
      any = std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0;
    closedir(directory);
    return !any;
  }

  FindQuery query_;
  bool unread_ = false;
  struct stat attributes_{};
  Layout layout_;
  bool haveAttributes_ = false, attributesKnown_ = false, haveLayout_ = false, layoutKnown_ = false;
};

// "trainfs-OST0001" or "trainfs-OST0001_UUID".
std::optional<uint32_t> ostIndex(const std::string& name) {
  auto text = name.ends_with("_UUID") ? name.substr(0, name.size() - 5) : name;
  for (const Mount& mount : trainfsMounts()) {
    std::string prefix = mount.fsname + "-OST";
    if (!text.starts_with(prefix)) continue;
    char* end = nullptr;
    auto digits = text.substr(prefix.size());
    unsigned long index = std::strtoul(digits.c_str(), &end, 16);
    if (!digits.empty() && *end == '\0' && index < kSingleOstChains)
      return static_cast<uint32_t>(index);
  }
  return std::nullopt;
}

int run(int argc, char** argv) {
  auto query = parseFind(argc, argv, {.now = std::time(nullptr), .ostIndex = ostIndex});
  if (query.help) return std::fputs(kFind.help, stdout), 0;
  if (!query.error.empty()) return usageError("find", query.error);
  // A pipe gets whole blocks; a terminal sees each line as it is found.
  if (!isatty(STDOUT_FILENO)) setvbuf(stdout, nullptr, _IOFBF, 64 * 1024);
  return Find(std::move(query)).run();
}

}  // namespace

const Command kFind = {
    "find", "look for files by name, attributes and layout",
    R"(Usage: tfs find [PATH]... [[!] TEST]... [-maxdepth N] [-mindepth N] [-print0 | --json]
Prints the files below each PATH (.) for which all tests hold; ! in front of a test negates it. Options may begin with
one or two dashes. +N means more than N, -N less, N alone exactly (of a size with a unit: rounded up to it; of a time:
N whole units ago). Symbolic links are not followed. Prints what it has found as it goes, and exits with 1 if
something could not be read.

  -type, -t T            b, c, d, f, l, p or s
  -name, -n PATTERN      the last component, as the shell matches; -iname: whatever the case
  -size, -s [+-]N        bytes, or with k M G T P E, c (bytes), b (512 bytes)
  -mtime, -M [+-]N       last changed N days ago; or with s m h d w y
  -atime, -A; -ctime, -C the same for last access and last change of status
  -newer FILE            changed later than FILE; -anewer, -cnewer: accessed, changed status
  -user, -u; -group, -g  owner, by name or number; also -uid, -gid
  -links [+-]N           number of hard links
  -perm MODE             octal: exactly; -MODE: all of these bits; /MODE: any of them
  -empty                 a file without data, a directory without entries
  -ost, -O LIST          has objects on one of these OSTs: 0,2 or names as tfs osts shows
  -stripe-count, -c [+-]N    of the last component that has objects; of a directory: its own default
  -stripe-size, -S [+-]N     the same, in bytes or with a unit
  -pool NAME             a component asks for that pool
  -maxdepth, -D N; -mindepth N    levels below PATH
  -print, -p; -print0, -P    a NUL behind each path instead of a newline
      --json             as JSON, one object (line) for each file: path, fid and attributes, times in UTC
  -lazy                  accepted for compatibility

Examples:
  tfs find /mnt/trainfs -type f -size +1G -stripe-count 1        large files on one OST
  tfs find /mnt/trainfs -ost 3 -print0 | xargs -0 cp -t /safe    what is on OST 3
  tfs find /mnt/trainfs -type f --json | jq -s 'map(.size) | add'
  tfs find /mnt/trainfs/tmp -type f -mtime +30 ! -name '*.keep'
)",
    run};

}  // namespace trainfs::tfs
