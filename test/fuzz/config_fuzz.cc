// Configuration files: refused with the file's name, or values within their limits.
#include <sys/mman.h>
#include <unistd.h>

#include "target.h"
#include "trainfs/config.h"

using namespace trainfs;
using fuzz::require;

std::vector<std::string> fuzz::seeds() {
  return {"listen = \"0.0.0.0:7171\"\nworkers = 3\n",
          "verbose = true\nlog-level = \"debug\"\n",
          "[data]\nlisten = \"*\"\ndepth = 99\n",
          "nodes = [\"a\", \"b:1\"]\nindex = 0\n",
          "# nothing\n",
          "listen = '''x\ny'''\ndata.depth = 0x10\n"};
}

namespace {

// A file without a disk below it, by a path.
class MemoryFile {
 public:
  MemoryFile()
      : fd_(memfd_create("config", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
    require(fd_ >= 0);
  }
  void fill(const uint8_t* data, size_t size) {
    require(ftruncate(fd_, 0) == 0 && pwrite(fd_, data, size, 0) == static_cast<ssize_t>(size));
  }
  const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static MemoryFile file;
  file.fill(data, size);
  std::string listen, dataListen;
  bool verbose = false;
  uint32_t workers = 1, depth = 1;
  std::optional<uint32_t> index;
  std::vector<std::string> nodes;
  ProgramOptions options("trainfs-fuzz", "Reads what it is given.");
  options.add("listen", listen, "an address");
  options.add("verbose", verbose, "a switch");
  options.add("workers", workers, "a number", 1, 16);
  options.add("index", index, "a number or none", 0, 65535);
  options.add("nodes", nodes, "a list");
  options.add("data.listen", dataListen, "an address");
  options.add("data.depth", depth, "a number", 1, 100);
  const char* arguments[] = {"trainfs-fuzz", "--config", file.path().c_str()};
  if (auto exit = options.parse(3, arguments)) {
    require(exit->status == kExitUsage && exit->text.starts_with("trainfs-fuzz: "));
    require(exit->text.ends_with('\n'));
  } else {
    require(workers >= 1 && workers <= 16 && depth >= 1 && depth <= 100);
    require(!index || *index <= 65535);
  }
  return 0;
}
