// rename(2), renameat2(2) with RENAME_NOREPLACE and RENAME_EXCHANGE. POSIX.1-2017 rename(); where
// it leaves a choice, Linux do_renameat2() and vfs_rename().
#include <kj/debug.h>

#include "mds/changelog.h"
#include "mds/directory.h"
#include "mds/inodes.h"
#include "mds/names.h"
#include "mds/op_run.h"

namespace trainfs::mds {
namespace {

// No tree that came about by commands has a cycle; a longer way up than this is a damaged store.
constexpr uint32_t kDepthMax = 1u << 24;

// All that a rename reads, before it changes anything.
struct Rename {
  InodeRecord from;  // the directories; `to` is unused when there is only one
  InodeRecord to;
  bool oneDirectory = false;
  Entry source;
  std::optional<Entry> target;
  InodeRecord moved;
  std::optional<InodeRecord> replaced;
  std::string newKey;

  InodeRecord& toDirectory() { return oneDirectory ? from : to; }
};

// Whether `directory` is `ancestor` or below it.
bool isWithin(const View& view, InodeRecord directory, InodeId ancestor) {
  for (uint32_t depth = 0; depth < kDepthMax; depth++) {
    if (directory.attributes.inode == ancestor) return true;
    if (directory.attributes.inode == kRootInode) return false;
    auto parent = findInode(view, directory.parent);
    KJ_REQUIRE(parent.has_value(), "a directory without its parent",
               directory.attributes.inode.value);
    directory = *std::move(parent);
  }
  KJ_FAIL_REQUIRE("directories form a cycle", ancestor.value);
}

Status loadDirectories(const RenameOp& op, const View& view, Rename& rename) {
  auto from = loadLinkedDirectory(view, op.parent);
  if (!from) return from.error();
  rename.from = *std::move(from);
  rename.oneDirectory = op.parent == op.newParent;
  if (rename.oneDirectory) return Done{};
  auto to = loadLinkedDirectory(view, op.newParent);
  if (!to) return to.error();
  rename.to = *std::move(to);
  return Done{};
}

Status loadEntries(const RenameOp& op, const View& view, Rename& rename) {
  auto source = findEntry(view, rename.from, op.name);
  if (!source) return Errno(ENOENT);
  rename.source = *std::move(source);
  rename.target = findEntry(view, rename.toDirectory(), op.newName);
  if (op.noReplace && rename.target) return Errno(EEXIST);
  if (op.exchange && !rename.target) return Errno(ENOENT);
  auto moved = loadInode(view, rename.source.record.inode);
  if (!moved) return moved.error();
  rename.moved = *std::move(moved);
  if (rename.target) {
    auto replaced = loadInode(view, rename.target->record.inode);
    if (!replaced) return replaced.error();
    rename.replaced = *std::move(replaced);
    rename.newKey = rename.target->key;
    return Done{};
  }
  auto key = freeEntryKey(view, rename.toDirectory(), op.newName);
  if (!key) return key.error();
  rename.newKey = *std::move(key);
  return Done{};
}

bool sameInode(const Rename& rename) {
  return rename.target && rename.target->record.inode == rename.source.record.inode;
}

// EINVAL: a directory would end up below itself.
Status checkCycles(const RenameOp& op, const View& view, Rename& rename) {
  if (rename.oneDirectory) return Done{};
  if (rename.moved.isDirectory() && isWithin(view, rename.to, rename.moved.attributes.inode))
    return Errno(EINVAL);
  if (op.exchange && rename.replaced->isDirectory() &&
      isWithin(view, rename.from, rename.replaced->attributes.inode))
    return Errno(EINVAL);
  return Done{};
}

Status checkReplaced(const View& view, const Rename& rename) {
  if (!rename.replaced) return Done{};
  const auto& replaced = *rename.replaced;
  if (rename.moved.isDirectory() && !replaced.isDirectory()) return Errno(ENOTDIR);
  if (!rename.moved.isDirectory() && replaced.isDirectory()) return Errno(EISDIR);
  if (replaced.isDirectory() && !isEmpty(view, replaced.attributes.inode)) return Errno(ENOTEMPTY);
  return Done{};
}

// Moves a directory's link of its ".." from one directory to the other.
Status checkLinks(const RenameOp& op, Rename& rename) {
  if (rename.oneDirectory) return Done{};
  bool leaves = rename.moved.isDirectory();
  bool comes = rename.replaced && rename.replaced->isDirectory();
  if (leaves && !comes && rename.to.attributes.links >= kLinksMax) return Errno(EMLINK);
  if (op.exchange && comes && !leaves && rename.from.attributes.links >= kLinksMax)
    return Errno(EMLINK);
  return Done{};
}

// The ".." of a directory that moves is a link of its parent.
void moveParentLink(InodeRecord& from, InodeRecord& to) {
  from.attributes.links--;
  to.attributes.links++;
}

void putDirectories(Txn& txn, Rename& rename, Time now) {
  touchDirectory(rename.from, now);
  touchDirectory(rename.toDirectory(), now);
  putInode(txn, rename.from);
  if (!rename.oneDirectory) putInode(txn, rename.to);
}

void exchange(Txn& txn, Rename& rename, Time now) {
  auto& other = *rename.replaced;
  if (!rename.oneDirectory) {
    if (rename.moved.isDirectory()) moveParentLink(rename.from, rename.to);
    if (other.isDirectory()) moveParentLink(rename.to, rename.from);
  }
  rename.moved.attributes.ctime = other.attributes.ctime = now;
  txn.put(rename.source.key, encodeEntry(rename.target->record));
  txn.put(rename.target->key, encodeEntry(rename.source.record));
  moveName(txn, rename.moved, rename.source.key, rename.target->key);
  moveName(txn, other, rename.target->key, rename.source.key);
  putInode(txn, rename.moved);
  putInode(txn, other);
  putDirectories(txn, rename, now);
}

void move(Txn& txn, Rename& rename, const Holders& holders, Time now) {
  if (rename.moved.isDirectory() && !rename.oneDirectory) moveParentLink(rename.from, rename.to);
  if (rename.replaced && rename.replaced->isDirectory()) rename.toDirectory().attributes.links--;
  rename.moved.attributes.ctime = now;
  txn.erase(rename.source.key);
  txn.put(rename.newKey, encodeEntry(rename.source.record));
  moveName(txn, rename.moved, rename.source.key, rename.newKey);
  putInode(txn, rename.moved);
  putDirectories(txn, rename, now);
  if (!rename.replaced) return;
  dropName(txn, *rename.replaced, rename.newKey);
  dropLink(txn, *std::move(rename.replaced), holders, now);
}

void logRename(Txn& txn, const Command& command, const RenameOp& op, const Rename& rename) {
  ChangeRecord change{.type = ChangeType::kRename,
                      .parent = op.newParent,
                      .name = op.newName,
                      .source = rename.moved.attributes.inode,
                      .sourceParent = op.parent,
                      .sourceName = op.name};
  if (!op.exchange) {
    if (rename.replaced) {
      auto& replaced = *rename.replaced;
      change.target = replaced.attributes.inode;
      change.lastLink = replaced.isDirectory() || replaced.attributes.links == 1;
    }
    return logChange(txn, command, std::move(change));
  }
  // Two moves, neither of which replaces anything.
  ChangeRecord back{.type = ChangeType::kRename,
                    .parent = op.parent,
                    .name = op.name,
                    .source = rename.replaced->attributes.inode,
                    .sourceParent = op.newParent,
                    .sourceName = op.newName};
  logChange(txn, command, std::move(change));
  logChange(txn, command, std::move(back));
}

}  // namespace

Result<Outcome> run(const RenameOp& op, const Command& command, Txn& txn) {
  if (op.noReplace && op.exchange) return Errno(EINVAL);
  for (const auto* name : {&op.name, &op.newName})
    if (auto good = checkName(*name); !good) return good.error();
  Rename rename;
  if (auto loaded = loadDirectories(op, txn, rename); !loaded) return loaded.error();
  if (auto loaded = loadEntries(op, txn, rename); !loaded) return loaded.error();
  Outcome outcome{.inode = rename.moved.attributes.inode};
  // POSIX: two names of the same file: nothing happens, successfully.
  if (sameInode(rename)) return outcome;
  if (auto good = checkCycles(op, txn, rename); !good) return good.error();
  if (!op.exchange)
    if (auto good = checkReplaced(txn, rename); !good) return good.error();
  if (auto good = checkLinks(op, rename); !good) return good.error();

  logRename(txn, command, op, rename);
  if (op.exchange)
    exchange(txn, rename, command.now);
  else
    move(txn, rename, op.holders, command.now);
  return outcome;
}

}  // namespace trainfs::mds
