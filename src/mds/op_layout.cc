// Layouts: a directory's default, an empty file's own, and chains for a component about to be
// written.
#include <algorithm>

#include "mds/changelog.h"
#include "mds/inodes.h"
#include "mds/op_run.h"
#include "striping/layout.h"
#include "striping/layout_record.h"
#include "striping/placement.h"

namespace trainfs::mds {
namespace {

bool anyInstantiated(const Layout& layout) {
  return std::any_of(layout.components.begin(), layout.components.end(),
                     [](const Component& component) { return component.instantiated(); });
}

bool anyExists(const Layout& layout) {
  return std::any_of(layout.components.begin(), layout.components.end(),
                     [](const Component& component) {
                       return std::find(component.exists.begin(), component.exists.end(), true) !=
                              component.exists.end();
                     });
}

Status setDirectoryDefault(const SetLayoutOp& op, InodeRecord& record) {
  if (op.layout.components.empty()) {
    if (record.layout.empty()) return Errno(ENODATA);
    record.layout.clear();
    return Done{};
  }
  auto layout = op.layout;
  for (auto& component : layout.components) {  // a default names no objects
    component.chains.clear();
    component.exists.clear();
  }
  if (!striping::checkLayout(layout).empty()) return Errno(EINVAL);
  record.layout = striping::encodeLayout(layout);
  return Done{};
}

// EEXIST, as Lustre, once there is data. EBUSY: another session writes the file and may have made
// objects that it has not reported yet.
Status setFileLayout(const SetLayoutOp& op, const Command& command, Txn& txn, InodeRecord& record) {
  if (op.layout.components.empty() || !striping::checkLayout(op.layout).empty())
    return Errno(EINVAL);
  auto old = decodeLayoutOf(record);
  if (record.attributes.sizeBytes != 0 || anyExists(old)) return Errno(EEXIST);
  for (SessionId writer : sessionsOf(txn, Relation::kWriter, op.inode))
    if (writer != command.session) return Errno(EBUSY);
  auto layout = op.layout;
  layout.generation = old.generation;
  if (anyInstantiated(old)) {
    // An object of the old layout may exist all the same, of a writer that died: it must not be
    // taken for one of the new.
    putGarbage(txn, op.inode, old);
    layout.generation++;
  }
  record.layout = striping::encodeLayout(layout);
  return Done{};
}

}  // namespace

Result<Outcome> run(const SetLayoutOp& op, const Command& command, Txn& txn) {
  auto record = loadInode(txn, op.inode);
  if (!record) return record.error();
  if (!record->isDirectory() && !record->isRegular()) return Errno(EINVAL);
  if (op.create && !record->layout.empty()) return Errno(EEXIST);
  if (op.replace && record->layout.empty()) return Errno(ENODATA);
  auto set = record->isDirectory() ? setDirectoryDefault(op, *record)
                                   : setFileLayout(op, command, txn, *record);
  if (!set) return set.error();
  record->attributes.ctime = command.now;
  putInode(txn, *record);
  logChange(txn, command, {.type = ChangeType::kLayout, .target = op.inode});
  return Outcome{.inode = op.inode};
}

Result<Outcome> run(const InstantiateOp& op, const Command&, Txn& txn) {
  auto record = loadInode(txn, op.inode);
  if (!record) return record.error();
  if (record->isDirectory()) return Errno(EISDIR);
  auto layout = decodeLayoutOf(*record);
  if (!record->isRegular() || op.component >= layout.components.size()) return Errno(EINVAL);
  auto& component = layout.components[op.component];
  if (component.instantiated()) return Outcome{.inode = op.inode};
  if (op.chains.empty()) return Errno(EINVAL);
  striping::setChains(component, op.chains);
  if (!striping::checkLayout(layout).empty()) return Errno(EINVAL);

  record->layout = striping::encodeLayout(layout);
  putInode(txn, *record);
  return Outcome{.inode = op.inode};
}

}  // namespace trainfs::mds
