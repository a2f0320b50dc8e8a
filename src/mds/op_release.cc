// The session has closed its last handle of an inode.
#include "mds/inodes.h"
#include "mds/op_run.h"

namespace trainfs::mds {

Result<Outcome> run(const ReleaseOp& op, const Command& command, Txn& txn) {
  releaseHold(txn, command.session, op.inode);
  return Outcome{.inode = txn.get(inodeKey(op.inode)) ? op.inode : kNoInode};
}

}  // namespace trainfs::mds
