// Makes an inode of any type and its first entry; or opens the regular file that is there already.
// mkdir(2), mknod(2), symlink(2), open(2) with O_CREAT; POSIX.1-2017 open(), mkdir(), symlink(). Or
// an inode without an entry: open(2) with O_TMPFILE.
#include <sys/stat.h>
#include <xxhash.h>

#include "mds/changelog.h"
#include "mds/directory.h"
#include "mds/inode_acls.h"
#include "mds/inodes.h"
#include "mds/names.h"
#include "mds/op_run.h"
#include "mds/privileges.h"
#include "striping/layout.h"
#include "striping/layout_record.h"

namespace trainfs::mds {
namespace {

Status checkTarget(const std::string& target) {
  if (target.empty()) return Errno(ENOENT);
  if (target.size() > kSymlinkBytesMax) return Errno(ENAMETOOLONG);
  if (target.find('\0') != target.npos) return Errno(EINVAL);
  return Done{};
}

Status checkLayout(const CreateOp& op) {
  bool given = !op.layout.components.empty();
  if (given ? !striping::checkLayout(op.layout).empty() : S_ISREG(op.mode)) return Errno(EINVAL);
  return Done{};
}

Status checkType(const CreateOp& op) {
  switch (op.mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR:
      return checkLayout(op);
    case S_IFLNK:
      return checkTarget(op.target);
    case S_IFIFO:
    case S_IFSOCK:
    case S_IFCHR:
    case S_IFBLK:
      return Done{};
    default:
      return Errno(EINVAL);
  }
}

// The entry is there: O_CREAT without O_EXCL opens a regular file; nothing else is ever created
// over.
Result<Outcome> openExisting(const CreateOp& op, const Command& command, Txn& txn, InodeId inode) {
  if (op.exclusive || !S_ISREG(op.mode)) return Errno(EEXIST);
  auto existing = loadInode(txn, inode);
  if (!existing) return existing.error();
  if (existing->isDirectory()) return Errno(EISDIR);
  if (!existing->isRegular()) return Errno(EEXIST);
  if (op.writing && command.session.value != 0)
    relate(txn, Relation::kWriter, command.session, inode);
  return Outcome{.inode = inode, .existed = true};
}

// Linux inode_init_owner(): in a set-group-ID directory the group is the directory's and a
// directory inherits the bit; a file loses it for a caller who is neither in that group nor
// privileged.
void setOwner(Attributes& attributes, const Attributes& parent, const Identity& identity) {
  attributes.uid = identity.uid;
  attributes.gid = identity.gid;
  if (!(parent.mode & S_ISGID)) return;
  attributes.gid = parent.gid;
  bool executable = (attributes.mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
  if (S_ISDIR(attributes.mode))
    attributes.mode |= S_ISGID;
  else if (executable && !maySetGroupId(identity, parent.gid))
    attributes.mode &= ~uint32_t{S_ISGID};
}

InodeRecord newInode(const CreateOp& op, const Command& command, Txn& txn,
                     const InodeRecord& parent) {
  InodeRecord record;
  auto& attributes = record.attributes;
  attributes.inode = op.newInode;
  attributes.mode = op.mode & (S_IFMT | 07777);
  attributes.links = 1;
  attributes.atime = attributes.mtime = attributes.ctime = attributes.btime = command.now;
  setOwner(attributes, parent.attributes, command.identity);
  if (!op.layout.components.empty() && (S_ISREG(op.mode) || S_ISDIR(op.mode)))
    record.layout = striping::encodeLayout(op.layout);
  if (S_ISCHR(op.mode) || S_ISBLK(op.mode)) attributes.device = op.device;
  if (S_ISLNK(op.mode)) {
    attributes.mode = S_IFLNK | 0777;
    attributes.sizeBytes = op.target.size();
    record.target = op.target;
  }
  if (record.isDirectory()) {
    attributes.links = 2;
    attributes.sizeBytes = attributes.usedBytes = kDirectoryBytes;
    record.hashSeed =
        XXH3_64bits_withSeed(&op.newInode.value, sizeof op.newInode.value, parent.hashSeed);
    // Root's default reaches everybody without one, so it is not copied: as Lustre.
    if (record.layout.empty() && op.parent != kRootInode) record.layout = parent.layout;
  }
  inheritAcls(txn, parent, op.umask, record);
  return record;
}

ChangeType changeType(uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return ChangeType::kCreate;
    case S_IFDIR:
      return ChangeType::kMkdir;
    case S_IFLNK:
      return ChangeType::kSymlink;
    default:
      return ChangeType::kMknod;
  }
}

// Inode numbers are used once: the leader counts on from the highest that the store has seen.
void raiseNextInode(Txn& txn, InodeId used) {
  if (nextInode(txn) <= used) txn.put(kNextInodeKey, encodeNumber(used.value + 1));
}

// A number in use would be a bug of the leader: refuse rather than merge two files.
Status checkNumber(const View& view, InodeId chosen) {
  if (chosen == kNoInode || findInode(view, chosen)) return Errno(EIO);
  return Done{};
}

void markWriter(const CreateOp& op, const Command& command, Txn& txn) {
  if (S_ISREG(op.mode) && op.writing && command.session.value != 0)
    relate(txn, Relation::kWriter, command.session, op.newInode);
}

// An orphan of the session from the start: it goes with the last handle, unless it is linked
// before. The directory only says where it could be linked and what it inherits.
Result<Outcome> makeUnnamed(const CreateOp& op, const Command& command, Txn& txn) {
  if (!S_ISREG(op.mode) || command.session.value == 0) return Errno(EINVAL);
  if (auto good = checkType(op); !good) return good.error();
  auto parent = loadLinkedDirectory(txn, op.parent);
  if (!parent) return parent.error();
  if (auto good = checkNumber(txn, op.newInode); !good) return good.error();

  auto record = newInode(op, command, txn, *parent);
  record.attributes.links = 0;
  record.linkable = op.linkable;
  putInode(txn, record);
  relate(txn, Relation::kOrphan, command.session, op.newInode);
  markWriter(op, command, txn);
  raiseNextInode(txn, op.newInode);
  return Outcome{.inode = op.newInode, .value = kMadeUnnamed};
}

}  // namespace

Result<Outcome> run(const CreateOp& op, const Command& command, Txn& txn) {
  if (op.unnamed) return makeUnnamed(op, command, txn);
  if (auto good = checkName(op.name); !good) return good.error();
  if (auto good = checkType(op); !good) return good.error();
  auto parent = loadLinkedDirectory(txn, op.parent);
  if (!parent) return parent.error();
  if (auto entry = findEntry(txn, *parent, op.name))
    return openExisting(op, command, txn, entry->record.inode);
  if (S_ISDIR(op.mode) && parent->attributes.links >= kLinksMax) return Errno(EMLINK);
  auto key = freeEntryKey(txn, *parent, op.name);
  if (!key) return key.error();
  if (auto good = checkNumber(txn, op.newInode); !good) return good.error();

  auto record = newInode(op, command, txn, *parent);
  if (record.isDirectory()) parent->attributes.links++;
  touchDirectory(*parent, command.now);
  txn.put(*key, encodeEntry(entryFor(record)));
  addName(txn, record, *key);
  putInode(txn, record);
  putInode(txn, *parent);
  markWriter(op, command, txn);
  raiseNextInode(txn, op.newInode);
  logChange(
      txn, command,
      {.type = changeType(op.mode), .target = op.newInode, .parent = op.parent, .name = op.name});
  return Outcome{.inode = op.newInode};
}

}  // namespace trainfs::mds
