#include "store_check.h"

#include <sys/stat.h>

#include <map>
#include <set>

#include "mds/acl.h"
#include "mds/command_record.h"
#include "mds/inodes.h"
#include "mds/keys.h"
#include "mds/namespace.h"
#include "mds/records.h"
#include "trainfs/acl_names.h"

namespace trainfs::mds {
namespace {

class StoreCheck {
 public:
  explicit StoreCheck(const View& view) : view_(view) {}

  std::vector<std::string> run() {
    view_.scan("", "", [&](std::string_view key, std::string_view value) {
      visit(key, value);
      return true;
    });
    for (auto& [inode, record] : inodes_) {
      checkLinks(record);
      checkAcls(record.attributes);
    }
    return std::move(problems_);
  }

 private:
  void problem(const std::string& what, uint64_t id) {
    problems_.push_back(what + " " + std::to_string(id));
  }

  void visit(std::string_view key, std::string_view value) {
    switch (key[0]) {
      case 'I':
        return visitInode(key, value);
      case 'D':
        return visitEntry(key, value);
      case 'L':
        return visitLink(key);
      case 'X':
        return visitXattr(key, value);
      case 'O':
      case 'W':
        return visitRelation(key);
      case 'S':
        return requireSession("slot of a missing session", idAt(key, 2));
      case 'G':
        return visitGarbage(key, value);
      case 'T':
        return visitTruncation(key, value);
      case 'C':
        return;
      default:
        problem("unknown key", static_cast<uint8_t>(key[0]));
    }
  }

  void visitInode(std::string_view key, std::string_view value) {
    InodeId inode{idAt(key, 1)};
    if (key != inodeKey(inode)) return problem("inode with an odd key", inode.value);
    inodes_.emplace(inode, decodeInode(inode, value));
    if (nextInode(view_) <= inode) problem("inode beyond the counter", inode.value);
  }

  void visitEntry(std::string_view key, std::string_view value) {
    InodeId directory{idAt(key, 1)};
    auto [place, name] = parseEntryKey(key);
    auto entry = decodeEntry(value);
    auto parent = findInode(view_, directory);
    auto child = findInode(view_, entry.inode);
    if (!parent || !parent->isDirectory())
      return problem("entry outside a directory", directory.value);
    if (parent->attributes.links == 0) problem("entry in a removed directory", directory.value);
    if (!child) return problem("entry without an inode", entry.inode.value);
    if (place.hash != nameHash(parent->hashSeed, name))
      problem("entry misplaced", entry.inode.value);
    if (entry.type != child->attributes.mode >> 12)
      problem("entry of wrong type", entry.inode.value);
    if (!names_.emplace(directory, name).second) problem("name twice", directory.value);
    entries_[entry.inode]++;
    bool first = child->parent == directory && child->place == place.cookie();
    bool further = view_.get(linkKey(entry.inode, {directory, place})).has_value();
    if (first == further) problem(first ? "name known twice" : "name unknown", entry.inode.value);
    if (!child->isDirectory()) return;
    subdirectories_[directory]++;
    if (!first) problem("directory with another parent", entry.inode.value);
  }

  // That every entry is known is seen there; here, that nothing else is.
  void visitLink(std::string_view key) {
    InodeId inode{idAt(key, 1)};
    auto record = findInode(view_, inode);
    if (!record || record->isDirectory()) problem("hard link of no file", inode.value);
    requireEntry(placeOfLink(key), inode);
  }

  void requireEntry(const NamePlace& at, InodeId inode) {
    auto prefix = entryPlaceKey(at.parent, at.place);
    bool found = false;
    view_.scan(prefix, prefix, [&](std::string_view, std::string_view value) {
      return found = decodeEntry(value).inode == inode;
    });
    if (!found) problem("name that is none", inode.value);
  }

  void visitXattr(std::string_view key, std::string_view value) {
    InodeId inode{idAt(key, 1)};
    requireInode("xattr of a missing inode", inode.value);
    auto name = xattrName(key);
    auto which = aclNamed(name);
    if (!which) return;
    auto acl = decodeAcl(value);
    if (!acl || encodeAcl(*acl) != value) return problem("damaged ACL", inode.value);
    bool access = which == kHasAccessAcl;
    acls_[inode] |= *which;
    auto record = findInode(view_, inode);
    if (!record) return;
    if (access && isMinimal(*acl)) problem("ACL that says what the mode says", inode.value);
    if (access && permissionsOf(*acl) != (record->attributes.mode & 0777))
      problem("mode and ACL differ", inode.value);
    if (!access && !record->isDirectory()) problem("default ACL of no directory", inode.value);
  }

  void visitRelation(std::string_view key) {
    bool bySession = key[1] == 's';
    uint64_t first = idAt(key, 2), second = relatedId(key);
    SessionId session{bySession ? first : second};
    InodeId inode{bySession ? second : first};
    auto relation = static_cast<Relation>(key[0]);
    // Write marks of session 0 are the MDS's own.
    if (relation != Relation::kWriter || session.value != 0)
      requireSession("mark of a missing session", session.value);
    requireInode("mark of a missing inode", inode.value);
    if (!view_.get(bySessionKey(relation, session, inode)) ||
        !view_.get(byInodeKey(relation, inode, session)))
      problem("mark one way only", inode.value);
    auto record = findInode(view_, inode);
    if (relation == Relation::kOrphan && record && record->attributes.links != 0)
      problem("orphan with links", inode.value);
    if (relation == Relation::kWriter && record && !record->isRegular())
      problem("write mark of no file", inode.value);
  }

  void visitGarbage(std::string_view key, std::string_view value) {
    auto inode = inodeOfGarbageKey(key);
    auto record = findInode(view_, inode);
    if (record && garbageKey(inode, decodeLayoutOf(*record).generation) == key)
      problem("objects in use are garbage", inode.value);
    if (value.empty()) problem("empty garbage", inode.value);
  }

  void visitTruncation(std::string_view key, std::string_view value) {
    InodeId inode{idAt(key, 1)};
    auto record = findInode(view_, inode);
    if (!record || !record->isRegular()) problem("truncation of no file", inode.value);
    auto command = decodeCommand(value);
    auto* set = std::get_if<SetAttrOp>(&command.op);
    if (set == nullptr || set->inode != inode || !(set->mask & kCutObjects))
      problem("another command than a truncation", inode.value);
  }

  void checkLinks(const InodeRecord& record) {
    const auto& attributes = record.attributes;
    InodeId inode = attributes.inode;
    uint32_t named = entries_[inode];
    uint32_t expected = named;
    if (record.isDirectory()) {
      if (named > 1) problem("directory with several names", inode.value);
      expected = named == 1 || inode == kRootInode ? 2 + subdirectories_[inode] : 0;
    }
    if (attributes.links != expected) problem("wrong link count", inode.value);
    if (expected == 0 && record.parent != kNoInode) problem("removed, with a name", inode.value);
    if (expected != 0 && inode != kRootInode)
      requireEntry({record.parent, EntryPlace::fromCookie(record.place)}, inode);
    if (expected == 0 && sessionsOf(view_, Relation::kOrphan, inode).empty())
      problem("leaked inode", inode.value);
  }

  void checkAcls(const Attributes& attributes) {
    if (attributes.acls != acls_[attributes.inode])
      problem("other ACLs than the inode says", attributes.inode.value);
  }

  void requireInode(const char* what, uint64_t inode) {
    if (!view_.get(inodeKey({inode}))) problem(what, inode);
  }
  void requireSession(const char* what, uint64_t session) {
    if (!view_.get(sessionKey({session}))) problem(what, session);
  }
  static uint64_t idAt(std::string_view key, size_t offset) {
    uint64_t id = 0;
    for (char byte : key.substr(offset, 8)) id = id << 8 | static_cast<uint8_t>(byte);
    return id;
  }

  const View& view_;
  std::vector<std::string> problems_;
  std::map<InodeId, InodeRecord> inodes_;
  std::map<InodeId, uint32_t> entries_, subdirectories_;
  std::map<InodeId, uint8_t> acls_;
  std::set<std::pair<InodeId, std::string>> names_;
};

}  // namespace

std::vector<std::string> problemsOf(const View& view) {
  return StoreCheck(view).run();
}

}  // namespace trainfs::mds
