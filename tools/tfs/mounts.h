// Which trainfs file systems are mounted here, from /proc/self/mountinfo.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainfs::tfs {

struct MdsAddress {
  std::string host;
  uint16_t port = 0;
};

struct Mount {
  std::string point;   // mounted on
  std::string source;  // HOST[:PORT][,HOST[:PORT]...]:/FSNAME
  std::string fsname;  // empty: the source has another form
  std::vector<MdsAddress> servers;
};

// Those of type trainfs or fuse.trainfs; one per mount point, the last mounted there.
std::vector<Mount> parseMountinfo(const std::string& text);
std::vector<Mount> trainfsMounts();

// The one that a path lies on; null: none. Looks at names first and at the file system only if it
// must, so that it answers even when the servers do not.
const Mount* mountOf(const std::vector<Mount>& mounts, const std::string& path);

}  // namespace trainfs::tfs
