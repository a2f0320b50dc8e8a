// POSIX ACLs among the extended attributes of an inode: acl(5), <linux/xattr.h>.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace trainfs {

// Attributes::acls: which ones an inode has, an access ACL beyond what its mode says, a directory's
// default ACL. The values are wire format and at rest.
enum AclBits : uint8_t { kHasAccessAcl = 1, kHasDefaultAcl = 2 };

inline constexpr std::string_view kAccessAclXattr = "system.posix_acl_access";
inline constexpr std::string_view kDefaultAclXattr = "system.posix_acl_default";

// Nothing: the extended attribute of that name is no ACL.
inline std::optional<AclBits> aclNamed(std::string_view xattr) {
  if (xattr == kAccessAclXattr) return kHasAccessAcl;
  if (xattr == kDefaultAclXattr) return kHasDefaultAcl;
  return std::nullopt;
}

}  // namespace trainfs
