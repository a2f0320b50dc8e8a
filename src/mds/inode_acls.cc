#include "mds/inode_acls.h"

#include <kj/debug.h>
#include <sys/stat.h>

#include "mds/keys.h"
#include "mds/privileges.h"

namespace trainfs::mds {
namespace {

constexpr uint32_t kPermissions = S_IRWXU | S_IRWXG | S_IRWXO;

std::string keyOf(const InodeRecord& record, AclBits which) {
  return xattrKey(record.attributes.inode,
                  which == kHasAccessAcl ? kAccessAclXattr : kDefaultAclXattr);
}

Acl loadAcl(const View& view, const InodeRecord& record, AclBits which) {
  auto value = view.get(keyOf(record, which));
  KJ_REQUIRE(value.has_value(), "an ACL is lost", record.attributes.inode.value);
  auto acl = decodeAcl(*value);
  KJ_REQUIRE(acl.ok(), "a damaged ACL", record.attributes.inode.value);
  return *std::move(acl);
}

void put(Txn& txn, InodeRecord& record, AclBits which, const Acl& acl) {
  txn.put(keyOf(record, which), encodeAcl(acl));
  record.attributes.acls |= which;
}

void erase(Txn& txn, InodeRecord& record, AclBits which) {
  if (!(record.attributes.acls & which)) return;
  txn.erase(keyOf(record, which));
  record.attributes.acls &= static_cast<uint8_t>(~which);
}

// The mode and the access ACL that agree with it.
void setAccessAcl(Txn& txn, InodeRecord& record, const Acl& acl) {
  auto& mode = record.attributes.mode;
  mode = (mode & ~kPermissions) | permissionsOf(acl);
  if (isMinimal(acl))
    erase(txn, record, kHasAccessAcl);
  else
    put(txn, record, kHasAccessAcl, acl);
}

}  // namespace

Status setAcl(Txn& txn, InodeRecord& record, AclBits which, std::string_view value,
              const Identity& identity) {
  auto& attributes = record.attributes;
  if (S_ISLNK(attributes.mode)) return Errno(EOPNOTSUPP);
  auto acl = decodeAcl(value);
  if (!acl) return acl.error();
  if (which == kHasDefaultAcl) {
    if (!record.isDirectory()) return Errno(EACCES);
    put(txn, record, which, *acl);
    return Done{};
  }
  if (!maySetGroupId(identity, attributes.gid)) attributes.mode &= ~uint32_t{S_ISGID};
  setAccessAcl(txn, record, *acl);
  return Done{};
}

Result<bool> removeAcl(Txn& txn, InodeRecord& record, AclBits which) {
  if (S_ISLNK(record.attributes.mode)) return Errno(EOPNOTSUPP);
  if (!(record.attributes.acls & which)) return false;
  erase(txn, record, which);
  return true;
}

void changeMode(Txn& txn, InodeRecord& record, uint32_t mode) {
  auto& attributes = record.attributes;
  attributes.mode = (attributes.mode & S_IFMT) | (mode & 07777);
  if (!(attributes.acls & kHasAccessAcl)) return;
  auto acl = loadAcl(txn, record, kHasAccessAcl);
  setPermissions(acl, mode);
  put(txn, record, kHasAccessAcl, acl);
}

void inheritAcls(Txn& txn, const InodeRecord& parent, uint32_t umask, InodeRecord& record) {
  auto& attributes = record.attributes;
  if (S_ISLNK(attributes.mode)) return;
  if (!(parent.attributes.acls & kHasDefaultAcl)) {
    attributes.mode &= ~(umask & kPermissions);
    return;
  }
  auto inherited = loadAcl(txn, parent, kHasDefaultAcl);
  setAccessAcl(txn, record, inheritedAcl(inherited, attributes.mode));
  if (record.isDirectory()) put(txn, record, kHasDefaultAcl, inherited);
}

}  // namespace trainfs::mds
