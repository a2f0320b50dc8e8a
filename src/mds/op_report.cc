// What a writer tells when it syncs, closes or is recalled: size, times, which objects exist now.
// A size that somebody else has set since is not undone: then the file gets the mark of the MDS
// itself, and its size is asked of the OSTs, as after a writer that died.
#include "mds/changelog.h"
#include "mds/inodes.h"
#include "mds/keys.h"
#include "mds/op_run.h"
#include "mds/privileges.h"
#include "striping/layout_record.h"

namespace trainfs::mds {
namespace {

// EINVAL: an object that the layout does not have.
Status markExisting(const ReportOp& op, Layout& layout) {
  for (auto [index, stripe] : op.exists) {
    if (index >= layout.components.size()) return Errno(EINVAL);
    auto& component = layout.components[index];
    if (stripe >= component.chains.size()) return Errno(EINVAL);
    component.exists.resize(component.chains.size());
    component.exists[stripe] = true;
  }
  return Done{};
}

}  // namespace

Result<Outcome> run(const ReportOp& op, const Command& command, Txn& txn) {
  // Without its mark the session was evicted, or the file is gone: its word counts no more.
  if (!related(txn, Relation::kWriter, command.session, op.inode)) return Errno(ESTALE);
  auto record = loadInode(txn, op.inode);
  if (!record) return record.error();
  if (op.sizeBytes > kFileBytesMax) return Errno(EFBIG);
  if (op.mtime.nanoseconds >= kNanosecondsPerSecond) return Errno(EINVAL);
  auto before = encodeInode(*record);
  if (!op.exists.empty()) {
    auto layout = decodeLayoutOf(*record);
    if (auto good = markExisting(op, layout); !good) return good.error();
    record->layout = striping::encodeLayout(layout);
  }

  auto& attributes = record->attributes;
  bool current = op.settings == attributes.settings;
  // The size was set after some of this was written, or before, or is about to be: the objects,
  // which are cut first, know.
  bool elsewhere = !current || txn.get(truncationKey(op.inode));
  bool overtaken = op.overtaken || (elsewhere && op.sizeBytes != 0);
  bool timed = op.mtime != Time{} && (current || op.mtime > attributes.ctime);
  bool grows = !overtaken && op.sizeBytes > attributes.sizeBytes;
  if (grows) attributes.sizeBytes = op.sizeBytes;
  if (current && !overtaken && op.usedBytes != 0) attributes.usedBytes = op.usedBytes;
  if (timed) attributes.mtime = op.mtime;
  if (grows || timed) attributes.ctime = command.now;
  if (op.killPrivileges) killPrivileges(txn, attributes, command.now);
  if (auto after = encodeInode(*record); after != before) txn.put(inodeKey(op.inode), after);
  if (!op.stillWriting) {
    unrelate(txn, Relation::kWriter, command.session, op.inode);
    logChange(txn, command, {.type = ChangeType::kClose, .target = op.inode});
  }
  if (overtaken) relate(txn, Relation::kWriter, kMdsItself, op.inode);
  return Outcome{.inode = op.inode, .value = overtaken ? kSizeToBeAsked : 0};
}

}  // namespace trainfs::mds
