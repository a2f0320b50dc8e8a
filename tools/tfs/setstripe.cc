// tfs setstripe: a new file with a layout, or the layout of an empty file, or the default of a
// directory.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>

#include "command.h"
#include "layout_xattr.h"
#include "setstripe_options.h"

namespace trainfs::tfs {
namespace {

constexpr const char* kName = "setstripe";

int complain(const std::string& path, int code) {
  return failure(kName, "setstripe error for '" + path + "': " + layoutError(code), code);
}

int setOnDirectory(const std::string& path, const SetstripeRequest& request) {
  auto done =
      request.layout.components.empty() ? removeLayout(path) : writeLayout(path, request.layout);
  return done ? 0 : complain(path, done.error().code());
}

// Removes the file again if it cannot have that layout: nobody is to find it with another one.
int create(const std::string& path, const SetstripeRequest& request) {
  std::string parent = std::filesystem::path(path).parent_path().string();
  if (auto own = readLayout(parent.empty() ? "." : parent); !own && own.error() == Errno(ENOTTY))
    return complain(path, ENOTTY);
  int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, request.mode);
  if (fd < 0)
    return failure(kName, "unable to open '" + path + "': " + std::strerror(errno), errno);
  close(fd);
  if (request.layout.components.empty()) return 0;
  auto done = writeLayout(path, request.layout);
  if (done) return 0;
  unlink(path.c_str());
  return complain(path, done.error().code());
}

int setOn(const std::string& path, const SetstripeRequest& request) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) return complain(path, errno);
    return request.remove ? complain(path, ENOENT) : create(path, request);
  }
  if (S_ISDIR(status.st_mode)) return setOnDirectory(path, request);
  if (request.remove) return complain(path, ENOTDIR);
  if (!S_ISREG(status.st_mode))
    return failure(kName, "'" + path + "' is neither a file nor a directory", EINVAL);
  if (status.st_size != 0 || request.layout.components.empty()) return complain(path, EEXIST);
  auto done = writeLayout(path, request.layout);
  return done ? 0 : complain(path, done.error().code());
}

// The template's wishes without its objects. A directory without a layout of its own asks for
// nothing.
int copyLayout(SetstripeRequest& request) {
  auto source = readLayout(request.copyFrom);
  if (!source && source.error() == Errno(ENODATA)) return 0;
  if (!source)
    return failure(kName,
                   "can't read the layout of '" + request.copyFrom +
                       "': " + layoutError(source.error().code()),
                   source.error().code());
  request.layout = *source;
  request.layout.generation = 0;
  for (Component& component : request.layout.components) {
    component.chains.clear();
    component.exists.clear();
  }
  return 0;
}

int run(int argc, char** argv) {
  auto request = parseSetstripe(argc, argv);
  if (request.help) return std::fputs(kSetstripe.help, stdout), 0;
  if (!request.error.empty()) return usageError(kName, request.error);
  for (const std::string& pool : request.pools)
    warning(kName, "warning: pool '" + pool +
                       "' is recorded, but no pools are defined yet: files may use any OST");
  if (!request.copyFrom.empty())
    if (int code = copyLayout(request); code != 0) return code;
  int result = 0;
  for (const std::string& path : request.paths) {
    int code = setOn(path, request);
    if (result == 0) result = code;
  }
  return result;
}

constexpr const char* kHelp =
    R"(Usage: tfs setstripe [OPTION]... PATH...
       tfs setstripe -E END [OPTION]... [-E END [OPTION]...]... PATH...
       tfs setstripe -d DIRECTORY...
Says how files are laid over OSTs. A PATH that does not exist becomes an empty file with that layout; an
empty file gets it; a directory makes it the default of the files created in it from then on.

  -c, --stripe-count N   spread over N OSTs; -1: all; 0 or not given: 1
  -S, --stripe-size SIZE bytes on one OST before the next one; a multiple of 64K; default 4M
  -i, --stripe-index N   first OST; -1 or not given: the servers choose (recommended)
  -o, --ost LIST         exactly these OSTs, in this order: 0,2 or 4-7; may be given several times
  -p, --pool NAME        recorded; has no effect until pools can be defined
  -E, --component-end END
                         what stands before the next -E holds for the file up to END (256M, 1G, -1: the
                         end); later components inherit -c, -S and -p from the one before
  -d, --delete           a directory goes back to the default of the file system
      --copy=PATH        take the layout of PATH
      --mode=MODE        permissions of a new file (octal)

Examples:
  tfs setstripe -c 4 -S 1M /mnt/trainfs/checkpoints     new files there go over 4 OSTs
  tfs setstripe -c -1 /mnt/trainfs/corpus.bin           one big file over all OSTs
  tfs setstripe -E 64M -c 1 -E -1 -c 8 /mnt/trainfs     small files on one OST, large ones on more
  tfs setstripe -d /mnt/trainfs/checkpoints             as if nothing had been set
)";

}  // namespace

const Command kSetstripe = {kName, "lay out a new file, or set the default of a directory", kHelp,
                            run};

}  // namespace trainfs::tfs
