// chmod(2), chown(2), truncate(2), utimensat(2), in one, and the growth of fallocate(2); what comes
// before and in place of it when objects are to be cut. Who may do it was settled by the client's
// kernel.
#include <linux/fs.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "mds/changelog.h"
#include "mds/command_record.h"
#include "mds/inode_acls.h"
#include "mds/inodes.h"
#include "mds/keys.h"
#include "mds/namespace.h"
#include "mds/op_run.h"
#include "mds/privileges.h"
#include "striping/layout.h"

namespace trainfs::mds {
namespace {

// Flags that are kept for those who ask; none of them changes what the file system does. Others
// would promise something: they are refused.
constexpr uint32_t kKnownFlags = FS_NODUMP_FL | FS_NOATIME_FL;

constexpr uint64_t kUsedUnitBytes = 4096;

Status checkSize(const SetAttrOp& op, const InodeRecord& record) {
  if (record.isDirectory()) return Errno(EISDIR);
  if (!record.isRegular()) return Errno(EINVAL);
  if (op.sizeBytes > kFileBytesMax) return Errno(EFBIG);
  if ((op.mask & kCutObjects) && op.keepBytes > op.sizeBytes) return Errno(EINVAL);
  if (op.sizeBytes <= record.attributes.sizeBytes) return Done{};
  if (!striping::componentAt(decodeLayoutOf(record), op.sizeBytes - 1)) return Errno(EFBIG);
  return Done{};
}

Status check(const SetAttrOp& op, const InodeRecord& record) {
  if ((op.mask & kSetFlags) && (op.flags & ~kKnownFlags)) return Errno(EOPNOTSUPP);
  if ((op.mask & kSetAtime) && op.atime.nanoseconds >= kNanosecondsPerSecond) return Errno(EINVAL);
  if ((op.mask & kSetMtime) && op.mtime.nanoseconds >= kNanosecondsPerSecond) return Errno(EINVAL);
  if (op.mask & (kSetSize | kGrowSize)) return checkSize(op, record);
  if (op.mask & kCutObjects) return Errno(EINVAL);
  return Done{};
}

// truncate() marks mtime even if the size stays.
void setSize(Attributes& attributes, uint64_t sizeBytes, Time now) {
  uint64_t usedMax = (sizeBytes + kUsedUnitBytes - 1) / kUsedUnitBytes * kUsedUnitBytes;
  if (sizeBytes < attributes.sizeBytes)
    attributes.usedBytes = std::min(attributes.usedBytes, usedMax);
  attributes.sizeBytes = sizeBytes;
  attributes.mtime = now;
}

// One record for one request, of what weighs most in it, as Lustre. Nobody follows access times.
std::optional<ChangeType> changeType(uint32_t mask) {
  if (mask & (kSetSize | kGrowSize)) return ChangeType::kTruncate;
  if (mask & (kSetMode | kSetUid | kSetGid | kSetFlags | kKillPrivileges))
    return ChangeType::kSetattr;
  if (mask & (kSetMtime | kSetMtimeNow)) return ChangeType::kMtime;
  return std::nullopt;
}

}  // namespace

Result<Outcome> run(const SetAttrOp& op, const Command& command, Txn& txn) {
  auto record = loadInode(txn, op.inode);
  if (!record) return record.error();
  if (auto good = check(op, *record); !good) return good.error();
  bool cut = op.mask & kCutObjects;
  if (cut && !truncating(txn, op.inode)) return Errno(EINVAL);

  auto& attributes = record->attributes;
  // A change of owner always takes privileges; a mode in the same request is the caller's last
  // word.
  if (op.mask & (kSetUid | kSetGid | kKillPrivileges)) killPrivileges(txn, attributes, command.now);
  if (op.mask & kSetMode) changeMode(txn, *record, op.mode);
  if (op.mask & kSetUid) attributes.uid = op.uid;
  if (op.mask & kSetGid) attributes.gid = op.gid;
  bool grows = (op.mask & kGrowSize) && op.sizeBytes > attributes.sizeBytes;
  if (grows || (op.mask & kSetSize)) setSize(attributes, op.sizeBytes, command.now);
  if (op.mask & kSetAtime) attributes.atime = op.atime;
  if (op.mask & kSetMtime) attributes.mtime = op.mtime;
  if (op.mask & kSetAtimeNow) attributes.atime = command.now;
  if (op.mask & kSetMtimeNow) attributes.mtime = command.now;
  if (op.mask & kSetSizeOrMtime) ++attributes.settings;
  if (op.mask & kSetFlags) attributes.flags = op.flags;
  attributes.ctime = command.now;
  putInode(txn, *record);
  if (cut) txn.erase(truncationKey(op.inode));
  if (auto type = changeType(op.mask)) logChange(txn, command, {.type = *type, .target = op.inode});
  return Outcome{.inode = op.inode};
}

// Refuses what the command would be refused for, before an object is touched.
Result<Outcome> run(const BeginTruncationOp& op, const Command& command, Txn& txn) {
  auto record = loadInode(txn, op.set.inode);
  if (!record) return record.error();
  if (!(op.set.mask & kCutObjects)) return Errno(EINVAL);
  if (auto good = check(op.set, *record); !good) return good.error();
  if (truncating(txn, op.set.inode)) return Errno(EBUSY);
  Command set{.session = command.session,
              .slot = op.slot,
              .sequence = op.sequence,
              .identity = command.identity,
              .now = command.now,
              .op = op.set};
  txn.put(truncationKey(op.set.inode), encodeCommand(set));
  return Outcome{.inode = op.set.inode};
}

// Some objects may be cut, so nobody knows the size but they.
Result<Outcome> run(const EndTruncationOp& op, const Command&, Txn& txn) {
  if (!truncating(txn, op.inode)) return Errno(ESTALE);  // so is the file
  txn.erase(truncationKey(op.inode));
  relate(txn, Relation::kWriter, kMdsItself, op.inode);
  return Outcome{.error = op.error, .inode = op.inode, .value = kSizeToBeAsked};
}

}  // namespace trainfs::mds
