#include "mds/inodes.h"

#include <kj/debug.h>

#include <algorithm>

#include "striping/layout_record.h"

namespace trainfs::mds {
namespace {

// The inode, its extended attributes, write marks and truncation go; its objects become garbage.
void destroy(Txn& txn, const InodeRecord& record) {
  InodeId inode = record.attributes.inode;
  if (record.isRegular()) putGarbage(txn, inode, decodeLayoutOf(record));
  for (const auto& key : keysOf(txn, xattrPrefix(inode))) txn.erase(key);
  unrelateAll(txn, Relation::kWriter, inode);
  txn.erase(truncationKey(inode));
  txn.erase(inodeKey(inode));
}

}  // namespace

std::optional<InodeRecord> findInode(const View& view, InodeId inode) {
  auto bytes = view.get(inodeKey(inode));
  if (!bytes) return std::nullopt;
  return decodeInode(inode, *bytes);
}

Result<InodeRecord> loadInode(const View& view, InodeId inode) {
  auto record = findInode(view, inode);
  if (!record) return Errno(ESTALE);
  return *std::move(record);
}

Result<InodeRecord> loadDirectory(const View& view, InodeId inode) {
  auto record = loadInode(view, inode);
  if (record && !record->isDirectory()) return Errno(ENOTDIR);
  return record;
}

Result<InodeRecord> loadLinkedDirectory(const View& view, InodeId inode) {
  auto record = loadDirectory(view, inode);
  if (record && record->attributes.links == 0) return Errno(ENOENT);
  return record;
}

void putInode(Txn& txn, const InodeRecord& record) {
  txn.put(inodeKey(record.attributes.inode), encodeInode(record));
}

void touchDirectory(InodeRecord& directory, Time now) {
  directory.attributes.mtime = directory.attributes.ctime = now;
}

bool dropLink(Txn& txn, InodeRecord record, const Holders& holders, Time now) {
  auto& attributes = record.attributes;
  KJ_REQUIRE(attributes.links > 0, "a link to an inode without links", attributes.inode.value);
  attributes.links = record.isDirectory() ? 0 : attributes.links - 1;
  attributes.ctime = now;
  bool kept = attributes.links > 0;
  if (!kept) {
    for (const auto& [inode, session] : holders) {
      if (inode != attributes.inode || !txn.get(sessionKey(session))) continue;
      relate(txn, Relation::kOrphan, session, inode);
      kept = true;
    }
  }
  if (kept)
    putInode(txn, record);
  else
    destroy(txn, record);
  return kept;
}

bool related(const View& view, Relation relation, SessionId session, InodeId inode) {
  return view.get(bySessionKey(relation, session, inode)).has_value();
}

void relate(Txn& txn, Relation relation, SessionId session, InodeId inode) {
  txn.put(bySessionKey(relation, session, inode), {});
  txn.put(byInodeKey(relation, inode, session), {});
}

void unrelate(Txn& txn, Relation relation, SessionId session, InodeId inode) {
  txn.erase(bySessionKey(relation, session, inode));
  txn.erase(byInodeKey(relation, inode, session));
}

void unrelateAll(Txn& txn, Relation relation, InodeId inode) {
  for (SessionId session : sessionsOf(txn, relation, inode))
    unrelate(txn, relation, session, inode);
}

std::vector<InodeId> inodesOf(const View& view, Relation relation, SessionId session, size_t most) {
  std::vector<InodeId> inodes;
  for (const auto& key : keysOf(view, bySessionPrefix(relation, session), most))
    inodes.push_back({relatedId(key)});
  return inodes;
}

std::vector<SessionId> sessionsOf(const View& view, Relation relation, InodeId inode) {
  std::vector<SessionId> sessions;
  for (const auto& key : keysOf(view, byInodePrefix(relation, inode)))
    sessions.push_back({relatedId(key)});
  return sessions;
}

void releaseHold(Txn& txn, SessionId session, InodeId inode) {
  unrelate(txn, Relation::kWriter, session, inode);
  if (!related(txn, Relation::kOrphan, session, inode)) return;
  unrelate(txn, Relation::kOrphan, session, inode);
  if (!sessionsOf(txn, Relation::kOrphan, inode).empty()) return;
  auto record = findInode(txn, inode);
  KJ_REQUIRE(record.has_value() && record->attributes.links == 0, "an orphan that is none",
             inode.value);
  destroy(txn, *record);
}

void putGarbage(Txn& txn, InodeId inode, const Layout& layout) {
  bool instantiated = std::any_of(layout.components.begin(), layout.components.end(),
                                  [](const Component& c) { return c.instantiated(); });
  if (!instantiated) return;
  txn.put(garbageKey(inode, layout.generation), striping::encodeLayout(layout));
}

std::vector<std::string> keysOf(const View& view, std::string_view prefix, size_t most) {
  std::vector<std::string> keys;
  view.scan(prefix, prefix, [&](std::string_view key, std::string_view) {
    if (keys.size() == most) return false;
    keys.emplace_back(key);
    return true;
  });
  return keys;
}

}  // namespace trainfs::mds
