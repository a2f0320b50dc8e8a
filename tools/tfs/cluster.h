// What the MDS tells about the cluster, and whether OSTs can be reached. Each call takes a bounded
// time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "mounts.h"

namespace trainfs::tfs {

inline constexpr std::chrono::seconds kPatience{5};  // for all of a file system's MDSs together
inline constexpr size_t kProbesAtOnce = 256;

struct TargetStatus {
  uint32_t index = 0;
  std::string uuid, address;
  bool active = false;
  uint64_t totalBytes = 0, freeBytes = 0, availableBytes = 0;
  uint64_t files = 0, freeFiles = 0;
};

struct DataPort {
  uint32_t ost = 0;
  std::string host;
  uint16_t port = 0;
};

struct ClusterStatus {
  std::string error;   // not empty: nobody answered, and why
  std::string server;  // HOST:PORT that answered
  std::string fsname;
  std::vector<TargetStatus> mdts, osts;
  std::vector<DataPort> dataPorts;
};

ClusterStatus askCluster(const Mount& mount);

// One answer for each: empty if it accepts connections, else why not.
std::vector<std::string> probe(const std::vector<DataPort>& ports);

}  // namespace trainfs::tfs
