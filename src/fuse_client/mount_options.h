// The command line of trainfs-client, which is that of a mount helper (mount(8), "External
// helpers"). Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "trainfs/config.h"

namespace trainfs::client {

enum class UringMode { kOff, kAuto, kOn };
// Whom locks of files (flock, fcntl) keep out: processes of all mounts, or of this one, or there
// are none.
enum class Locking { kCluster, kLocal, kNone };

struct MountOptions {
  std::string source;  // as given: HOST[:PORT][,HOST...]:/fsname[/DIRECTORY]
  std::vector<HostPort> servers;
  std::string fsname;
  std::vector<std::string> directory;  // below the file system's root; what is mounted
  std::string mountPoint;

  bool foreground = false, verbose = false;
  bool checkOnly = false;                // the command line, and nothing else
  bool remount = false, sloppy = false;  // for remount():
  std::vector<std::string> lists;        // as after each -o
  std::string logFile, logLevel = "info";
  std::string metricsListen;  // HOST:PORT for Prometheus; empty: nowhere

  bool readOnly = false;
  bool allowOther = true;
  bool soft = false;
  std::chrono::seconds softTimeout{60}, connectTimeout{10};
  UringMode uring = UringMode::kOff;
  Locking locking = Locking::kCluster;
  uint32_t uringQueueDepth = 0;  // per processor; 0: by the number of processors
  uint32_t threads = 0;          // that receive requests; 0: by the number of processors
  uint32_t dataWorkers = 2;      // threads that talk to the OSSes
  uint32_t lanes = 1;            // connections of each to each data port
  uint32_t readaheadKib = 4096;
  std::vector<std::string> kernelOptions;  // for the kernel, by way of libfuse
};

// What to print and how to end, when there is nothing to mount.
struct MountUsage {
  int status;
  std::string text;
};

// Fills in `options`, or says why not.
std::optional<MountUsage> parseMountOptions(int argc, const char* const* argv,
                                            MountOptions& options);

// "HOST[:PORT][,HOST[:PORT]...]:/fsname[/DIRECTORY]". Returns what is wrong with it, or an empty
// string.
std::string parseSource(const std::string& source, MountOptions& options);
// A list as after -o. `sloppy`: unknown ones are ignored. Returns what is wrong with it, or an
// empty string.
std::string parseOptionList(const std::string& list, bool sloppy, MountOptions& options);

// The options of this program (not those of the kernel), such that parseOptionList makes the same
// of them.
std::string optionList(const MountOptions& options);
// What is wrong with making a mount with `present` options one with `wanted`: the first one that
// can be set at the mount only. Or an empty string.
std::string checkRemount(const MountOptions& present, const MountOptions& wanted);

}  // namespace trainfs::client
