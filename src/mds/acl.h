// POSIX access control lists: acl(5), POSIX.1e draft 17. Pure functions over what setxattr(2) and
// getxattr(2) carry under two names, struct posix_acl_xattr_header and _entry of
// <linux/posix_acl_xattr.h>. Who may do what the client's kernel decides; here is what becomes of
// ACLs and modes, as fs/posix_acl.c has it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainfs/result.h"

namespace trainfs::mds {

// A client's kernel asks for an ACL into one page, and could check nobody's permission by a longer
// one.
inline constexpr size_t kAclBytesMax = 4096;

struct AclEntry {
  uint16_t tag = 0;          // ACL_USER_OBJ and others, <linux/posix_acl.h>
  uint16_t permissions = 0;  // 4 read, 2 write, 1 execute or search
  uint32_t id = 0;           // of named users and groups; ACL_UNDEFINED_ID for others
  friend bool operator==(const AclEntry&, const AclEntry&) = default;
};

// Entries as posix_acl_valid() wants them: owner, named users, owning group, named groups, mask,
// others; a mask if anybody is named.
using Acl = std::vector<AclEntry>;

// E2BIG: longer than kAclBytesMax. EOPNOTSUPP: another version. EINVAL: no valid ACL.
Result<Acl> decodeAcl(std::string_view value);
std::string encodeAcl(const Acl& acl);

// The nine permission bits that stat(2) shows: the group's are the mask's if there is one.
uint32_t permissionsOf(const Acl& acl);

// The mode says all of it: there are no entries but those of owner, group and others.
bool isMinimal(const Acl& acl);

// chmod(2): the mode's bits become those of owner, mask (group, where there is no mask), others.
void setPermissions(Acl& acl, uint32_t mode);

// The access ACL of an inode that is made with `mode` in a directory with the default ACL
// `inherited`: nobody gets more than both give. permissionsOf() it are the inode's permissions.
Acl inheritedAcl(const Acl& inherited, uint32_t mode);

}  // namespace trainfs::mds
