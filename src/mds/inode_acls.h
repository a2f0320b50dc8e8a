// ACLs of inodes in the store: extended attributes that are bound to the inode's mode and to
// Attributes::acls. Used by the operations inside one transaction; the record is put by the caller.
#pragma once

#include <string_view>

#include "mds/acl.h"
#include "mds/command.h"
#include "mds/records.h"
#include "mds/store.h"
#include "trainfs/acl_names.h"
#include "trainfs/result.h"

namespace trainfs::mds {

// setxattr(2) of an ACL; an access ACL changes the mode with it, and is not kept if the mode says
// all of it. It takes the set-group-ID bit from a file of a group that the caller is not in. E2BIG,
// EINVAL: see decodeAcl(). EOPNOTSUPP: a symbolic link. EACCES: a default ACL of no directory.
Status setAcl(Txn& txn, InodeRecord& record, AclBits which, std::string_view value,
              const Identity& identity);
// removexattr(2) of an ACL; the mode stays. False: there is none, which is no error. EOPNOTSUPP: a
// symbolic link.
Result<bool> removeAcl(Txn& txn, InodeRecord& record, AclBits which);

// chmod(2): the permission bits of `mode` go into the access ACL, too.
void changeMode(Txn& txn, InodeRecord& record, uint32_t mode);

// The permissions of a new inode whose mode is still as its maker asked for: what the parent's
// default ACL leaves of it, which the inode gets as its access ACL, and a directory as its own
// default, too; else what the umask leaves. Symbolic links have neither.
void inheritAcls(Txn& txn, const InodeRecord& parent, uint32_t umask, InodeRecord& record);

}  // namespace trainfs::mds
