// tfs getstripe: how files are laid out, and what new files in a directory get.
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"
#include "getstripe_options.h"
#include "json_text.h"
#include "layout_xattr.h"
#include "mounts.h"
#include "striping/placement.h"

namespace trainfs::tfs {
namespace {

constexpr const char* kName = "getstripe";

class Walk {
 public:
  explicit Walk(const GetstripeRequest& request) : request_(request) {}

  // Prints the path and what is in it. `named`: it stands on the command line.
  void show(const std::string& path, int depth, bool named);
  int finish();

 private:
  void showDirectory(const std::string& path, InodeId inode, int depth);
  void showFile(const std::string& path, InodeId inode);
  void print(const Striped& striped);
  void fail(const std::string& path, int code);
  Layout defaultOf(const std::string& directory);

  const GetstripeRequest& request_;
  nlohmann::json all_ = nlohmann::json::array();
  int result_ = 0;
  std::string rootOfDefault_;  // mount point that rootDefault_ is of
  Layout rootDefault_;
};

void Walk::fail(const std::string& path, int code) {
  std::fprintf(stderr, "tfs: %s for '%s' failed: %s\n", kName, path.c_str(),
               layoutError(code).c_str());
  if (result_ == 0) result_ = code;
}

void Walk::print(const Striped& striped) {
  if (request_.json) return all_.push_back(stripedJson(striped));
  if (!request_.mdtIndex) {
    std::string text = formatStriped(striped, request_.selection);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  unsigned mdt = striped.inode.birthMdt();
  if (request_.selection.showPath)
    std::printf("%s\nmdt_index:\t%u\n", striped.path.c_str(), mdt);
  else
    std::printf("%u\n", mdt);
}

// What a directory without a default of its own gives its files: the root's, else the built-in one.
Layout Walk::defaultOf(const std::string& directory) {
  auto mounts = trainfsMounts();
  const Mount* mount = mountOf(mounts, directory);
  std::string root = mount == nullptr ? "" : mount->point;
  if (root.empty()) return striping::defaultLayout();
  if (root != rootOfDefault_) {
    auto own = readLayout(root);
    rootDefault_ = own && !own->components.empty() ? *own : striping::defaultLayout();
    rootOfDefault_ = root;
  }
  return rootDefault_;
}

void Walk::showFile(const std::string& path, InodeId inode) {
  auto layout = readLayout(path, request_.followSymlinks);
  if (!layout && layout.error() != Errno(ENODATA)) return fail(path, layout.error().code());
  if (!layout || layout->components.empty()) {
    if (!request_.json && !request_.selection.ost)
      std::printf("%s has no stripe info\n", path.c_str());
    return;
  }
  print({path, inode, false, false, *layout});
}

void Walk::showDirectory(const std::string& path, InodeId inode, int depth) {
  auto layout = readLayout(path);
  if (!layout && layout.error() != Errno(ENODATA)) return fail(path, layout.error().code());
  bool inherited = !layout || layout->components.empty();
  print({path, inode, true, inherited, inherited ? defaultOf(path) : *layout});
  if (request_.depthMax >= 0 && depth >= request_.depthMax) return;

  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error) fail(path, error.value());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names)
    show(path.back() == '/' ? path + name : path + "/" + name, depth + 1, false);
}

void Walk::show(const std::string& path, int depth, bool named) {
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0) {
    // A file that went away while we walked is no error.
    return named || errno != ENOENT ? fail(path, errno) : void();
  }
  if (S_ISLNK(status.st_mode) && request_.followSymlinks) {
    // Below a named directory a link may lead anywhere, back up or out: only files are shown
    // through one.
    if (stat(path.c_str(), &status) != 0) return named ? fail(path, errno) : void();
    if (S_ISDIR(status.st_mode) && !named) return;
  }
  InodeId inode{status.st_ino};
  if (S_ISDIR(status.st_mode)) return showDirectory(path, inode, depth);
  showFile(path, inode);
}

int Walk::finish() {
  if (request_.json) std::printf("%s\n", jsonBlock(all_).c_str());
  return result_;
}

int run(int argc, char** argv) {
  auto request = parseGetstripe(argc, argv);
  if (request.help) return std::fputs(kGetstripe.help, stdout), 0;
  if (!request.error.empty()) return usageError(kName, request.error);
  Walk walk(request);
  for (const std::string& path : request.paths) walk.show(path, 0, true);
  return walk.finish();
}

constexpr const char* kHelp =
    R"(Usage: tfs getstripe [OPTION]... PATH...
Shows how files are laid over OSTs. For a directory: what new files in it get, then all that is in it.

One value alone (of composite files: of the last component that has objects):
  -c, --stripe-count     -S, --stripe-size      -i, --stripe-index  first OST
  -p, --pool             -L, --layout           -g, --generation
  -F, --fid              -m, --mdt-index        -N, --mirror-count
      --component-count  -I, --component-id         --component-flags
      --component-start  -E, --component-end

Only some components, with the value attached:
  -I2, --component-id=2      --component-flags=init      (or ^init)
  -E[+-]64M, --component-end=[+-]64M      --component-start=[+-]0

  -d, --directory        the directory itself only
  -r, --recursive        everything below, too
  -O, --ost OST          only what has an object on that OST: 3 or trainfs-OST0003
  -q, --quiet            only objects
  -v, --verbose          also file identifiers
  -R, --raw              what is set on a directory, without defaults filled in
  -y, --yaml             as YAML
      --json             as JSON
      --hex-idx          OST indices in hexadecimal
      --no-follow        do not follow symbolic links

Examples:
  tfs getstripe /mnt/trainfs/corpus.bin          everything about one file
  tfs getstripe -c /mnt/trainfs/corpus.bin       its stripe count
  tfs getstripe -d /mnt/trainfs                  what new files get
  tfs getstripe -r -O 2 /mnt/trainfs             all files with data on OST 2
An object's file on its OST is named by group and objid, 16 hexadecimal digits each.
)";

}  // namespace

const Command kGetstripe = {kName, "show the layout of files, and the default of directories",
                            kHelp, run};

}  // namespace trainfs::tfs
