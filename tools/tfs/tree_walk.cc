#include "tree_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

namespace trainfs::tfs {
namespace {

constexpr size_t kOpenLevels = 64;  // directories that are open at the same time

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

Directory openAt(int directory, const char* name) {
  int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return nullptr;
  Directory opened(fdopendir(fd));
  if (opened == nullptr) close(fd);
  return opened;
}

bool isDots(const char* name) {
  return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0;
}

unsigned char typeOf(int directory, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type;
  struct stat status{};
  if (fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) return DT_REG;
  return IFTODT(status.st_mode);
}

}  // namespace

// A directory on the way down. Those far above are closed, and opened again as ".." of the one
// below, when the walk comes back; the place in them is the cookie of the entry read last.
struct TreeWalk::Level {
  Directory directory;
  dev_t device = 0;
  ino_t inode = 0;
  long cookie = 0;
  size_t pathBytes = 0;  // of the path up to here
};

void TreeWalk::descend(std::string& path, int directory, const std::string& name, unsigned depth) {
  std::vector<Level> way;
  auto enter = [&](int from, const char* into) {
    struct stat status{};
    Level level{.directory = openAt(from, into), .pathBytes = path.size()};
    if (level.directory == nullptr || fstat(dirfd(level.directory.get()), &status) != 0)
      return complain_(path, errno);
    level.device = status.st_dev;
    level.inode = status.st_ino;
    way.push_back(std::move(level));
    if (way.size() > kOpenLevels) way[way.size() - 1 - kOpenLevels].directory.reset();
  };
  // False: the tree was moved meanwhile, and what is left of that directory cannot be found.
  auto comeBack = [&] {
    Level below = std::move(way.back());
    way.pop_back();
    if (way.empty()) return true;
    Level& level = way.back();
    path.resize(level.pathBytes);
    if (level.directory != nullptr) return true;
    level.directory = openAt(dirfd(below.directory.get()), "..");
    struct stat status{};
    bool same = level.directory != nullptr && fstat(dirfd(level.directory.get()), &status) == 0 &&
                status.st_dev == level.device && status.st_ino == level.inode;
    if (same) seekdir(level.directory.get(), level.cookie);
    return same;
  };
  enter(directory, name.c_str());
  while (!way.empty()) {
    Level& level = way.back();
    path.resize(level.pathBytes);
    errno = 0;
    const dirent* entry = readdir(level.directory.get());
    if (entry == nullptr) {
      if (errno != 0) complain_(path, errno);
      if (comeBack()) continue;
      complain_(path, ESTALE);
      return;
    }
    if (isDots(entry->d_name)) continue;
    level.cookie = entry->d_off;
    int fd = dirfd(level.directory.get());
    std::string child = entry->d_name;
    unsigned char type = typeOf(fd, *entry);
    if (path.back() != '/') path += '/';
    path += child;
    auto below = static_cast<unsigned>(depth + way.size());
    if (visit_({path, child, fd, type, below}) && type == DT_DIR) enter(fd, child.c_str());
  }
}

void TreeWalk::run(const std::string& start) {
  struct stat status{};
  if (lstat(start.c_str(), &status) != 0) return complain_(start, errno);
  std::string path = start;
  size_t end = start.find_last_not_of('/');
  size_t slash = end == start.npos ? end : start.rfind('/', end);
  std::string name = end == start.npos ? "/" : start.substr(slash + 1, end - slash);
  unsigned char type = IFTODT(status.st_mode);
  bool enter = visit_({path, name, AT_FDCWD, type, 0});
  if (enter && type == DT_DIR) descend(path, AT_FDCWD, start, 0);
}

}  // namespace trainfs::tfs
