#include "mds/acl.h"

#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>

#include <algorithm>
#include <cerrno>

#include "trainfs/codec.h"

namespace trainfs::mds {
namespace {

constexpr uint32_t kUndefinedId = static_cast<uint32_t>(ACL_UNDEFINED_ID);
constexpr uint16_t kAllPermissions = ACL_READ | ACL_WRITE | ACL_EXECUTE;
constexpr uint32_t kOwnerShift = 6, kGroupShift = 3, kOthersShift = 0;

bool isNamed(const AclEntry& entry) {
  return entry.tag == ACL_USER || entry.tag == ACL_GROUP;
}

// Where an entry of this tag may stand; 0: nowhere.
int rankOf(uint16_t tag) {
  constexpr uint16_t kOrder[] = {ACL_USER_OBJ, ACL_USER, ACL_GROUP_OBJ,
                                 ACL_GROUP,    ACL_MASK, ACL_OTHER};
  auto found = std::find(std::begin(kOrder), std::end(kOrder), tag);
  return found == std::end(kOrder) ? 0 : static_cast<int>(found - std::begin(kOrder)) + 1;
}

bool isValid(const Acl& acl) {
  int rank = 0;
  for (auto& entry : acl) {
    int next = rankOf(entry.tag);
    if (next < rank || next == 0 || (next == rank && !isNamed(entry))) return false;
    if (entry.permissions & ~kAllPermissions) return false;
    if (isNamed(entry) && entry.id == kUndefinedId) return false;
    rank = next;
  }
  auto has = [&](uint16_t tag) {
    return std::any_of(acl.begin(), acl.end(), [tag](auto& entry) { return entry.tag == tag; });
  };
  bool base = has(ACL_USER_OBJ) && has(ACL_GROUP_OBJ) && has(ACL_OTHER);
  return base && (has(ACL_MASK) || std::none_of(acl.begin(), acl.end(), isNamed));
}

// The three entries that mode bits stand for, each with the place of its bits.
template <typename AnyAcl, typename Visit>
void forModeEntries(AnyAcl& acl, Visit visit) {
  bool masked =
      std::any_of(acl.begin(), acl.end(), [](auto& entry) { return entry.tag == ACL_MASK; });
  for (auto& entry : acl) {
    if (entry.tag == ACL_USER_OBJ)
      visit(entry, kOwnerShift);
    else if (entry.tag == (masked ? ACL_MASK : ACL_GROUP_OBJ))
      visit(entry, kGroupShift);
    else if (entry.tag == ACL_OTHER)
      visit(entry, kOthersShift);
  }
}

uint16_t bitsAt(uint32_t mode, uint32_t shift) {
  return static_cast<uint16_t>(mode >> shift & kAllPermissions);
}

}  // namespace

Result<Acl> decodeAcl(std::string_view value) {
  constexpr size_t kHeaderBytes = sizeof(posix_acl_xattr_header);
  constexpr size_t kEntryBytes = sizeof(posix_acl_xattr_entry);
  if (value.size() > kAclBytesMax) return Errno(E2BIG);
  if (value.size() < kHeaderBytes) return Errno(EINVAL);
  Reader reader(value);
  if (reader.get<uint32_t>() != POSIX_ACL_XATTR_VERSION) return Errno(EOPNOTSUPP);
  if ((value.size() - kHeaderBytes) % kEntryBytes != 0) return Errno(EINVAL);
  Acl acl((value.size() - kHeaderBytes) / kEntryBytes);
  for (auto& entry : acl) {
    entry.tag = reader.get<uint16_t>();
    entry.permissions = reader.get<uint16_t>();
    entry.id = reader.get<uint32_t>();
    if (!isNamed(entry)) entry.id = kUndefinedId;
  }
  if (!isValid(acl)) return Errno(EINVAL);
  return acl;
}

std::string encodeAcl(const Acl& acl) {
  Writer writer;
  writer.put(uint32_t{POSIX_ACL_XATTR_VERSION});
  for (auto& entry : acl) writer.put(entry.tag).put(entry.permissions).put(entry.id);
  return writer.take();
}

uint32_t permissionsOf(const Acl& acl) {
  uint32_t mode = 0;
  forModeEntries(acl, [&](const AclEntry& entry, uint32_t shift) {
    mode |= uint32_t{entry.permissions} << shift;
  });
  return mode;
}

bool isMinimal(const Acl& acl) {
  return std::none_of(acl.begin(), acl.end(),
                      [](auto& entry) { return isNamed(entry) || entry.tag == ACL_MASK; });
}

void setPermissions(Acl& acl, uint32_t mode) {
  forModeEntries(acl,
                 [&](AclEntry& entry, uint32_t shift) { entry.permissions = bitsAt(mode, shift); });
}

Acl inheritedAcl(const Acl& inherited, uint32_t mode) {
  Acl acl = inherited;
  forModeEntries(
      acl, [&](AclEntry& entry, uint32_t shift) { entry.permissions &= bitsAt(mode, shift); });
  return acl;
}

}  // namespace trainfs::mds
