// What somebody unprivileged takes from a file by a write, a change of owner, of an ACL, or by
// making it.
#pragma once

#include "mds/command.h"
#include "mds/store.h"
#include "trainfs/types.h"

namespace trainfs::mds {

// Linux file_remove_privs() / FUSE_HANDLE_KILLPRIV_V2: set-user-ID goes, set-group-ID goes where
// the group may execute (otherwise the bit means something else), file capabilities go. Directories
// keep theirs.
void killPrivileges(Txn& txn, Attributes& attributes, Time now);

// Linux in_group_or_capable(): whether the set-group-ID bit stays on what this caller makes or
// gives an ACL to, of that group. CAP_FSETID is taken to be root's: a client sends no capabilities.
bool maySetGroupId(const Identity& identity, uint32_t gid);

}  // namespace trainfs::mds
