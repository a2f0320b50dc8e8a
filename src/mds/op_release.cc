// The session has closed its last handle of an inode.
#include "mds/changelog.h"
#include "mds/inodes.h"
#include "mds/op_run.h"

namespace trainfs::mds {

Result<Outcome> run(const ReleaseOp& op, const Command& command, Txn& txn) {
  if (related(txn, Relation::kWriter, command.session, op.inode))
    logChange(txn, command, {.type = ChangeType::kClose, .target = op.inode});
  releaseHold(txn, command.session, op.inode);
  return Outcome{.inode = txn.get(inodeKey(op.inode)) ? op.inode : kNoInode};
}

}  // namespace trainfs::mds
