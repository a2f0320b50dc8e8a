// link(2): another name for a file; or the first, for one that was made without (O_TMPFILE). Linux
// vfs_link() and POSIX.1-2017 link() for the errors.
#include "mds/changelog.h"
#include "mds/directory.h"
#include "mds/inodes.h"
#include "mds/names.h"
#include "mds/op_run.h"

namespace trainfs::mds {
namespace {

// Only its maker's session knows an inode that never had a name.
bool awaitsName(const View& view, const InodeRecord& record, SessionId session) {
  return record.linkable && related(view, Relation::kOrphan, session, record.attributes.inode);
}

}  // namespace

Result<Outcome> run(const LinkOp& op, const Command& command, Txn& txn) {
  if (auto good = checkName(op.name); !good) return good.error();
  auto parent = loadLinkedDirectory(txn, op.parent);
  if (!parent) return parent.error();
  auto record = loadInode(txn, op.inode);
  if (!record) return record.error();
  if (findEntry(txn, *parent, op.name)) return Errno(EEXIST);
  if (record->isDirectory()) return Errno(EPERM);
  bool first = record->attributes.links == 0;
  if (first && !awaitsName(txn, *record, command.session)) return Errno(ENOENT);
  if (record->attributes.links >= kLinksMax) return Errno(EMLINK);
  auto key = freeEntryKey(txn, *parent, op.name);
  if (!key) return key.error();

  record->attributes.links++;
  record->linkable = false;
  if (first) unrelateAll(txn, Relation::kOrphan, op.inode);
  record->attributes.ctime = command.now;
  touchDirectory(*parent, command.now);
  txn.put(*key, encodeEntry(entryFor(*record)));
  addName(txn, *record, *key);
  putInode(txn, *record);
  putInode(txn, *parent);
  logChange(txn, command,
            {.type = first ? ChangeType::kCreate : ChangeType::kHardlink,
             .target = op.inode,
             .parent = op.parent,
             .name = op.name});
  return Outcome{.inode = op.inode};
}

}  // namespace trainfs::mds
