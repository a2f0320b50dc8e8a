// Marks a file as being written by the session, durably: should the session die, the file's size
// has to be asked of the OSTs. A mark of session 0, the MDS itself, says that a writer did die and
// the size is still to be asked.
#include "mds/inodes.h"
#include "mds/op_run.h"

namespace trainfs::mds {

Result<Outcome> run(const OpenWriteOp& op, const Command& command, Txn& txn) {
  auto record = loadInode(txn, op.inode);
  if (!record) return record.error();
  if (record->isDirectory()) return Errno(EISDIR);
  if (!record->isRegular()) return Errno(EINVAL);
  relate(txn, Relation::kWriter, command.session, op.inode);
  return Outcome{.inode = op.inode};
}

}  // namespace trainfs::mds
