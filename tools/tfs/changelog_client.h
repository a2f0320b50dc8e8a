// What tfs asks of the MDS about its changelog. Each call takes a bounded time; of several servers
// that the mount names the first that answers is asked.
#pragma once

#include <string>
#include <vector>

#include "mounts.h"
#include "trainfs/types.h"

namespace trainfs::tfs {

struct Change {
  uint64_t index = 0;
  uint8_t type = 0;  // Lustre's number
  Time time;
  bool lastLink = false, hasOwner = false;
  uint32_t uid = 0, gid = 0;
  InodeId target, parent, source, sourceParent;
  std::string name, sourceName, xattr;
};

struct ChangelogUser {
  uint32_t id = 0;
  std::string name;
  uint64_t cleared = 0, idleSeconds = 0;
};

// `error` is not empty: nobody answered, and why. `code`: what the MDS answered, an errno.
struct ChangelogAnswer {
  std::string error;
  int code = 0;
  uint64_t last = 0;  // index of the newest record
  std::vector<Change> changes;
  std::vector<ChangelogUser> users;
  uint32_t user = 0;  // registered
};

ChangelogAnswer readChanges(const Mount& mount, uint16_t mdt, uint64_t first);
ChangelogAnswer listUsers(const Mount& mount, uint16_t mdt);
ChangelogAnswer registerUser(const Mount& mount, uint16_t mdt, const std::string& name);
ChangelogAnswer deregisterUser(const Mount& mount, uint16_t mdt, uint32_t user);
ChangelogAnswer clearChanges(const Mount& mount, uint16_t mdt, uint32_t user, uint64_t upTo);

}  // namespace trainfs::tfs
