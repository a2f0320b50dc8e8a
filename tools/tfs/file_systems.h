// The file systems that df, osts, mdts and check work on: those of the paths given, else all that
// are mounted.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cluster.h"
#include "mounts.h"

namespace trainfs::tfs {

// Calls `use` with each file system and its status (whose `error` may be set), once each; complains
// about paths on none. Returns the exit code of the first complaint, else the first that `use`
// returned.
int forEachFileSystem(const char* command, const std::vector<std::string>& paths,
                      const std::function<int(const Mount&, const ClusterStatus&)>& use);

// What df, osts and mdts say when no MDS answered.
int unreachable(const char* command, const Mount& mount, const ClusterStatus& status);

// "trainfs-OST0003", as Lustre.
std::string targetLabel(const std::string& fsname, const char* kind, uint32_t index);

nlohmann::json targetJson(const ClusterStatus& status, const char* kind,
                          const TargetStatus& target);

}  // namespace trainfs::tfs
