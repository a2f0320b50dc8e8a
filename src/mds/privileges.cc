#include "mds/privileges.h"

#include <sys/stat.h>

#include <algorithm>

#include "mds/keys.h"

namespace trainfs::mds {

void killPrivileges(Txn& txn, Attributes& attributes, Time now) {
  if (S_ISDIR(attributes.mode)) return;
  uint32_t mode = attributes.mode & ~uint32_t{S_ISUID};
  if (mode & S_IXGRP) mode &= ~uint32_t{S_ISGID};
  auto capability = xattrKey(attributes.inode, "security.capability");
  bool capable = txn.get(capability).has_value();
  if (capable) txn.erase(capability);
  if (capable || mode != attributes.mode) attributes.ctime = now;
  attributes.mode = mode;
}

bool maySetGroupId(const Identity& identity, uint32_t gid) {
  auto& groups = identity.groups;
  return identity.uid == 0 || identity.gid == gid ||
         std::find(groups.begin(), groups.end(), gid) != groups.end();
}

}  // namespace trainfs::mds
