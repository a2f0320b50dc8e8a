// Extended attributes: setxattr(2), removexattr(2). Which prefixes who may use is the client's
// kernel's rule. ACLs among them: inode_acls.h.
#include <linux/limits.h>

#include "mds/changelog.h"
#include "mds/inode_acls.h"
#include "mds/inodes.h"
#include "mds/namespace.h"
#include "mds/op_run.h"

namespace trainfs::mds {
namespace {

// Names and values of one inode together: what destroying it has to remove in one command. ENOSPC
// beyond, as other file systems.
constexpr size_t kXattrsBytesMax = 1 * kMiB;

struct Total {
  size_t listBytes = 0;  // as listxattr(2) returns names: each with its NUL
  size_t bytes = 0;
};

// Of all attributes but `name`.
Total othersTotal(const View& view, InodeId inode, std::string_view name) {
  Total total;
  auto prefix = xattrPrefix(inode);
  view.scan(prefix, prefix, [&](std::string_view key, std::string_view value) {
    auto other = xattrName(key);
    if (other == name) return true;
    total.listBytes += other.size() + 1;
    total.bytes += other.size() + value.size();
    return true;
  });
  return total;
}

Status checkXattrName(std::string_view name) {
  if (name.empty() || name.size() > kXattrNameBytesMax) return Errno(ERANGE);
  if (name.find('\0') != name.npos) return Errno(EINVAL);
  if (name.starts_with(kOwnXattrPrefix)) return Errno(EOPNOTSUPP);
  return Done{};
}

Outcome changed(InodeRecord& record, const std::string& name, const Command& command, Txn& txn) {
  InodeId inode = record.attributes.inode;
  record.attributes.ctime = command.now;
  putInode(txn, record);
  logChange(txn, command, {.type = ChangeType::kXattr, .target = inode, .xattr = name});
  return Outcome{.inode = inode};
}

}  // namespace

Result<Outcome> run(const SetXattrOp& op, const Command& command, Txn& txn) {
  if (auto good = checkXattrName(op.name); !good) return good.error();
  if (op.value.size() > kXattrValueBytesMax) return Errno(E2BIG);
  auto record = loadInode(txn, op.inode);
  if (!record) return record.error();
  auto acl = aclNamed(op.name);
  auto key = xattrKey(op.inode, op.name);
  bool exists = txn.get(key).has_value();
  if (op.create && exists) return Errno(EEXIST);
  if (op.replace && !exists) return Errno(ENODATA);
  auto total = othersTotal(txn, op.inode, op.name);
  if (total.listBytes + op.name.size() + 1 > XATTR_LIST_MAX) return Errno(ENOSPC);
  if (total.bytes + op.name.size() + op.value.size() > kXattrsBytesMax) return Errno(ENOSPC);

  if (!acl)
    txn.put(key, op.value);
  else if (auto good = setAcl(txn, *record, *acl, op.value, command.identity); !good)
    return good.error();
  return changed(*record, op.name, command, txn);
}

Result<Outcome> run(const RemoveXattrOp& op, const Command& command, Txn& txn) {
  if (auto good = checkXattrName(op.name); !good) return good.error();
  auto record = loadInode(txn, op.inode);
  if (!record) return record.error();
  if (auto acl = aclNamed(op.name)) {
    auto removed = removeAcl(txn, *record, *acl);
    if (!removed) return removed.error();
    return *removed ? changed(*record, op.name, command, txn) : Outcome{.inode = op.inode};
  }
  auto key = xattrKey(op.inode, op.name);
  if (!txn.get(key)) return Errno(ENODATA);
  txn.erase(key);
  return changed(*record, op.name, command, txn);
}

}  // namespace trainfs::mds
