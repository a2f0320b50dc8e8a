#include "reference_model.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace trainfs::mds {

ReferenceModel::ReferenceModel() {
  nodes_[kRootInode].mode = S_IFDIR | 0755;
}

int ReferenceModel::apply(const Operation& operation, SessionId session) {
  if (session.value != 0 && !sessions_.contains(session)) return ESTALE;
  int error = 0;
  if (auto* op = std::get_if<CreateOp>(&operation)) error = create(*op, session);
  if (auto* op = std::get_if<LinkOp>(&operation)) error = link(*op, session);
  if (auto* op = std::get_if<UnlinkOp>(&operation))
    error = remove(op->parent, op->name, false, operation);
  if (auto* op = std::get_if<RmdirOp>(&operation))
    error = remove(op->parent, op->name, true, operation);
  if (auto* op = std::get_if<RenameOp>(&operation)) error = rename(*op);
  if (auto* op = std::get_if<SetAttrOp>(&operation)) error = setAttr(*op);
  if (auto* op = std::get_if<ReportOp>(&operation)) error = report(*op, session);
  if (auto* op = std::get_if<SetXattrOp>(&operation)) {
    auto* node = find(op->inode);
    if (!node) return ESTALE;
    if (op->create && node->xattrs.contains(op->name)) return EEXIST;
    if (op->replace && !node->xattrs.contains(op->name)) return ENODATA;
    node->xattrs[op->name] = op->value;
  }
  if (auto* op = std::get_if<RemoveXattrOp>(&operation)) {
    auto* node = find(op->inode);
    if (!node) return ESTALE;
    if (node->xattrs.erase(op->name) == 0) return ENODATA;
  }
  if (auto* op = std::get_if<OpenWriteOp>(&operation)) {
    auto* node = find(op->inode);
    if (!node) return ESTALE;
    if (S_ISDIR(node->mode)) return EISDIR;
    if (!S_ISREG(node->mode)) return EINVAL;
    node->writers.insert(session);
  }
  if (auto* op = std::get_if<ReleaseOp>(&operation)) {
    if (auto* node = find(op->inode)) {
      node->writers.erase(session);
      node->holders.erase(session);
    }
  }
  if (std::get_if<OpenSessionOp>(&operation)) error = openSession();
  if (auto* op = std::get_if<EndSessionOp>(&operation)) error = endSession(op->session);
  collect();
  return error;
}

uint32_t ReferenceModel::linksOf(InodeId inode) const {
  const auto& node = nodes_.at(inode);
  uint32_t names = 0, subdirectories = 0;
  for (auto& [id, other] : nodes_)
    for (auto& [name, target] : other.entries) {
      if (target == inode) names++;
      if (id == inode && S_ISDIR(nodes_.at(target).mode)) subdirectories++;
    }
  if (!S_ISDIR(node.mode)) return names;
  return node.removed ? 0 : 2 + subdirectories;
}

ReferenceModel::ModelNode* ReferenceModel::find(InodeId inode) {
  auto found = nodes_.find(inode);
  return found == nodes_.end() ? nullptr : &found->second;
}

int ReferenceModel::requireDirectory(InodeId inode, bool linked) {
  auto* node = find(inode);
  if (!node) return ESTALE;
  if (!S_ISDIR(node->mode)) return ENOTDIR;
  return linked && node->removed ? ENOENT : 0;
}

int ReferenceModel::createUnnamed(const CreateOp& op, SessionId session) {
  if (session.value == 0) return EINVAL;
  if (int error = requireDirectory(op.parent, true)) return error;
  auto& node = nodes_[op.newInode];
  node.mode = op.mode;
  node.linkable = op.linkable;
  node.holders.insert(session);
  if (op.writing) node.writers.insert(session);
  return 0;
}

int ReferenceModel::create(const CreateOp& op, SessionId session) {
  if (op.unnamed) return createUnnamed(op, session);
  if (int error = requireDirectory(op.parent, true)) return error;
  auto& entries = nodes_[op.parent].entries;
  if (auto there = entries.find(op.name); there != entries.end()) {
    auto& node = nodes_[there->second];
    if (op.exclusive || !S_ISREG(op.mode)) return EEXIST;
    if (S_ISDIR(node.mode)) return EISDIR;
    if (!S_ISREG(node.mode)) return EEXIST;
    if (op.writing) node.writers.insert(session);
    return 0;
  }
  entries[op.name] = op.newInode;
  auto& node = nodes_[op.newInode];
  node.mode = S_ISLNK(op.mode) ? S_IFLNK | 0777 : op.mode;
  node.target = op.target;
  if (S_ISLNK(op.mode)) node.sizeBytes = op.target.size();
  if (op.writing && S_ISREG(op.mode)) node.writers.insert(session);
  return 0;
}

int ReferenceModel::link(const LinkOp& op, SessionId session) {
  if (int error = requireDirectory(op.parent, true)) return error;
  auto* node = find(op.inode);
  if (!node) return ESTALE;
  if (nodes_[op.parent].entries.contains(op.name)) return EEXIST;
  if (S_ISDIR(node->mode)) return EPERM;
  bool first = linksOf(op.inode) == 0;
  if (first && !(node->linkable && node->holders.contains(session))) return ENOENT;
  node->linkable = false;
  if (first) node->holders.clear();
  nodes_[op.parent].entries[op.name] = op.inode;
  return 0;
}

void ReferenceModel::hold(InodeId inode,
                          const std::vector<std::pair<InodeId, SessionId>>& holders) {
  auto& node = nodes_[inode];
  if (S_ISDIR(node.mode)) node.removed = true;
  if (linksOf(inode) != 0) return;
  for (auto& [held, session] : holders)
    if (held == inode && sessions_.contains(session)) node.holders.insert(session);
}

int ReferenceModel::remove(InodeId parent, const std::string& name, bool directory,
                           const Operation& op) {
  if (int error = requireDirectory(parent, false)) return error;
  auto& entries = nodes_[parent].entries;
  auto entry = entries.find(name);
  if (entry == entries.end()) return ENOENT;
  auto inode = entry->second;
  auto& node = nodes_[inode];
  if (directory && !S_ISDIR(node.mode)) return ENOTDIR;
  if (!directory && S_ISDIR(node.mode)) return EISDIR;
  if (!node.entries.empty()) return ENOTEMPTY;
  entries.erase(entry);
  hold(inode, directory ? std::get<RmdirOp>(op).holders : std::get<UnlinkOp>(op).holders);
  return 0;
}

bool ReferenceModel::isBelow(InodeId inode, InodeId ancestor) {
  if (inode == ancestor) return true;
  for (auto& [name, child] : nodes_[ancestor].entries)
    if (S_ISDIR(nodes_[child].mode) && isBelow(inode, child)) return true;
  return false;
}

int ReferenceModel::rename(const RenameOp& op) {
  if (op.noReplace && op.exchange) return EINVAL;
  if (int error = requireDirectory(op.parent, true)) return error;
  if (int error = requireDirectory(op.newParent, true)) return error;
  auto& from = nodes_[op.parent].entries;
  auto& to = nodes_[op.newParent].entries;
  auto source = from.find(op.name), target = to.find(op.newName);
  if (source == from.end()) return ENOENT;
  bool there = target != to.end();
  if (op.noReplace && there) return EEXIST;
  if (op.exchange && !there) return ENOENT;
  auto moved = source->second, replaced = there ? target->second : kNoInode;
  if (moved == replaced) return 0;
  bool directory = S_ISDIR(nodes_[moved].mode);
  bool overDirectory = there && S_ISDIR(nodes_[replaced].mode);
  if (directory && isBelow(op.newParent, moved)) return EINVAL;
  if (op.exchange) {
    if (overDirectory && isBelow(op.parent, replaced)) return EINVAL;
    std::swap(source->second, target->second);
    return 0;
  }
  if (there && directory && !overDirectory) return ENOTDIR;
  if (there && !directory && overDirectory) return EISDIR;
  if (overDirectory && !nodes_[replaced].entries.empty()) return ENOTEMPTY;
  from.erase(source);
  to[op.newName] = moved;
  if (there) hold(replaced, op.holders);
  return 0;
}

int ReferenceModel::setAttr(const SetAttrOp& op) {
  auto* node = find(op.inode);
  if (!node) return ESTALE;
  if (op.mask & kSetSize) {
    if (S_ISDIR(node->mode)) return EISDIR;
    if (!S_ISREG(node->mode)) return EINVAL;
    node->sizeBytes = op.sizeBytes;
  }
  if (op.mask & kSetSizeOrMtime) ++node->settings;
  if (op.mask & kSetMode) node->mode = (node->mode & S_IFMT) | (op.mode & 07777);
  return 0;
}

int ReferenceModel::report(const ReportOp& op, SessionId session) {
  auto* node = find(op.inode);
  if (!node || !node->writers.contains(session)) return ESTALE;
  bool overtaken = op.overtaken || (op.sizeBytes != 0 && op.settings != node->settings);
  if (!overtaken) node->sizeBytes = std::max(node->sizeBytes, op.sizeBytes);
  if (!op.stillWriting) node->writers.erase(session);
  if (overtaken) node->writers.insert(kMdsItself);
  return 0;
}

int ReferenceModel::openSession() {
  sessions_.insert({nextSession_++});
  return 0;
}

int ReferenceModel::endSession(SessionId session) {
  sessions_.erase(session);
  for (auto& [inode, node] : nodes_) {
    node.holders.erase(session);
    node.writers.erase(session);
  }
  return 0;
}

void ReferenceModel::collect() {
  std::set<InodeId> named{kRootInode};
  for (auto& [inode, node] : nodes_)
    for (auto& [name, child] : node.entries) named.insert(child);
  std::erase_if(nodes_, [&](auto& item) {
    return !named.contains(item.first) && item.second.holders.empty();
  });
}

}  // namespace trainfs::mds
