#include "file_systems.h"

#include <spdlog/fmt/fmt.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "command.h"

namespace trainfs::tfs {

int forEachFileSystem(const char* command, const std::vector<std::string>& paths,
                      const std::function<int(const Mount&, const ClusterStatus&)>& use) {
  auto mounts = trainfsMounts();
  int result = 0;
  auto note = [&result](int code) {
    if (result == 0) result = code;
  };
  std::vector<const Mount*> chosen;
  for (const std::string& path : paths) {
    if (const Mount* mount = mountOf(mounts, path))
      chosen.push_back(mount);
    else
      note(failure(command, "'" + path + "' is not on a mounted trainfs file system", EOPNOTSUPP));
  }
  if (paths.empty())
    for (const Mount& mount : mounts) chosen.push_back(&mount);
  if (chosen.empty() && paths.empty())
    return failure(command, "no trainfs file system is mounted", ENODEV);
  std::set<const Mount*> seen;
  for (const Mount* mount : chosen)
    if (seen.insert(mount).second) note(use(*mount, askCluster(*mount)));
  return result;
}

int unreachable(const char* command, const Mount& mount, const ClusterStatus& status) {
  return failure(command, mount.point + ": cannot ask the MDS: " + status.error, ENOTCONN);
}

std::string targetLabel(const std::string& fsname, const char* kind, uint32_t index) {
  return fmt::format("{}-{}{:04x}", fsname, kind, index);
}

nlohmann::json targetJson(const ClusterStatus& status, const char* kind,
                          const TargetStatus& target) {
  return {{"name", targetLabel(status.fsname, kind, target.index)},
          {"index", target.index},
          {"uuid", target.uuid},
          {"address", target.address},
          {"active", target.active},
          {"total_bytes", target.totalBytes},
          {"free_bytes", target.freeBytes},
          {"available_bytes", target.availableBytes},
          {"inodes", target.files},
          {"free_inodes", target.freeFiles}};
}

}  // namespace trainfs::tfs
