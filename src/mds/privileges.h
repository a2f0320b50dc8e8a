// What a write or a change of owner by somebody unprivileged takes from a file.
#pragma once

#include "mds/store.h"
#include "trainfs/types.h"

namespace trainfs::mds {

// Linux file_remove_privs() / FUSE_HANDLE_KILLPRIV_V2: set-user-ID goes, set-group-ID goes where
// the group may execute (otherwise the bit means something else), file capabilities go. Directories
// keep theirs.
void killPrivileges(Txn& txn, Attributes& attributes, Time now);

}  // namespace trainfs::mds
