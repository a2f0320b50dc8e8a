// rmdir(2). A directory that somebody has open stays, without links, until it is released.
#include "mds/changelog.h"
#include "mds/directory.h"
#include "mds/inodes.h"
#include "mds/names.h"
#include "mds/op_run.h"

namespace trainfs::mds {

Result<Outcome> run(const RmdirOp& op, const Command& command, Txn& txn) {
  if (auto good = checkName(op.name); !good) return good.error();
  auto parent = loadDirectory(txn, op.parent);
  if (!parent) return parent.error();
  auto entry = findEntry(txn, *parent, op.name);
  if (!entry) return Errno(ENOENT);
  InodeId inode = entry->record.inode;
  auto record = loadDirectory(txn, inode);
  if (!record) return record.error();
  if (!isEmpty(txn, inode)) return Errno(ENOTEMPTY);

  logChange(txn, command,
            {.type = ChangeType::kRmdir,
             .lastLink = true,
             .target = inode,
             .parent = op.parent,
             .name = op.name});
  txn.erase(entry->key);
  dropName(txn, *record, entry->key);
  parent->attributes.links--;
  touchDirectory(*parent, command.now);
  putInode(txn, *parent);
  bool kept = dropLink(txn, *std::move(record), op.holders, command.now);
  return Outcome{.inode = kept ? inode : kNoInode};
}

}  // namespace trainfs::mds
