// unlink(2). EISDIR for a directory as Linux has it (POSIX: EPERM).
#include "mds/changelog.h"
#include "mds/directory.h"
#include "mds/inodes.h"
#include "mds/names.h"
#include "mds/op_run.h"

namespace trainfs::mds {

Result<Outcome> run(const UnlinkOp& op, const Command& command, Txn& txn) {
  if (auto good = checkName(op.name); !good) return good.error();
  auto parent = loadDirectory(txn, op.parent);
  if (!parent) return parent.error();
  auto entry = findEntry(txn, *parent, op.name);
  if (!entry) return Errno(ENOENT);
  InodeId inode = entry->record.inode;
  auto record = loadInode(txn, inode);
  if (!record) return record.error();
  if (record->isDirectory()) return Errno(EISDIR);

  logChange(txn, command,
            {.type = ChangeType::kUnlink,
             .lastLink = record->attributes.links == 1,
             .target = inode,
             .parent = op.parent,
             .name = op.name});
  txn.erase(entry->key);
  dropName(txn, *record, entry->key);
  touchDirectory(*parent, command.now);
  putInode(txn, *parent);
  bool kept = dropLink(txn, *std::move(record), op.holders, command.now);
  return Outcome{.inode = kept ? inode : kNoInode};
}

}  // namespace trainfs::mds
