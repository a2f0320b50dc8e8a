// The objects of a garbage record are destroyed on their OSTs: forget it.
#include "mds/keys.h"
#include "mds/op_run.h"

namespace trainfs::mds {

Result<Outcome> run(const ReapedOp& op, const Command&, Txn& txn) {
  txn.erase(garbageKey(op.inode, op.generation));
  return Outcome{};
}

}  // namespace trainfs::mds
