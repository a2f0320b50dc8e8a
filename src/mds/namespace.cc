#include "mds/namespace.h"

#include <kj/debug.h>
#include <sys/stat.h>

#include <algorithm>

#include "mds/command_record.h"
#include "mds/directory.h"
#include "mds/inodes.h"
#include "mds/keys.h"
#include "mds/records.h"
#include "striping/layout_record.h"
#include "striping/layout_text.h"
#include "striping/placement.h"

namespace trainfs::mds {
namespace {

Node toNode(const InodeRecord& record) {
  return {record.attributes, decodeLayoutOf(record)};
}

// About what it takes in a message.
size_t bytesOf(const Layout& layout) {
  size_t bytes = 0;
  for (auto& component : layout.components)
    bytes += sizeof component + 4 * (component.chains.size() + component.ostList.size());
  return bytes;
}

Node requireNode(const View& view, InodeId inode) {
  auto record = findInode(view, inode);
  KJ_REQUIRE(record.has_value(), "a directory entry without its inode", inode.value);
  return toNode(*record);
}

uint64_t number(const View& view, std::string_view key) {
  auto bytes = view.get(key);
  KJ_REQUIRE(bytes.has_value(), "the metadata store lacks a number", std::string(key));
  return decodeNumber(key, *bytes);
}

}  // namespace

Result<Node> loadNode(const View& view, InodeId inode) {
  auto record = loadInode(view, inode);
  if (!record) return record.error();
  return toNode(*record);
}

Result<Node> lookup(const View& view, InodeId parent, std::string_view name) {
  if (name.size() > kNameBytesMax) return Errno(ENAMETOOLONG);
  auto directory = loadDirectory(view, parent);
  if (!directory) return directory.error();
  auto entry = findEntry(view, *directory, name);
  if (!entry) return Errno(ENOENT);
  return requireNode(view, entry->record.inode);
}

Result<DirPage> readdir(const View& view, InodeId dir, uint64_t cookie, uint32_t entriesMax) {
  auto directory = loadDirectory(view, dir);
  if (!directory) return directory.error();
  if (cookie >= kCookieMax) return DirPage{.entries = {}, .end = true};
  DirPage page{.entries = {}, .end = true};
  size_t most = std::min(entriesMax, kReaddirEntriesMax), bytes = 0;
  auto from = entryPlaceKey(dir, EntryPlace::fromCookie(cookie + 1));
  view.scan(from, directoryPrefix(dir), [&](std::string_view key, std::string_view value) {
    if (page.entries.size() == most || bytes >= kReaddirBytesMax) return page.end = false;
    auto [place, name] = parseEntryKey(key);
    InodeId inode = decodeEntry(value).inode;
    page.entries.push_back({std::string(name), place.cookie(), inode, requireNode(view, inode)});
    bytes += name.size() + sizeof(Node) + bytesOf(page.entries.back().node.layout);
    return true;
  });
  return page;
}

Result<std::string> readlink(const View& view, InodeId inode) {
  auto record = loadInode(view, inode);
  if (!record) return record.error();
  if (!S_ISLNK(record->attributes.mode)) return Errno(EINVAL);
  return std::move(record->target);
}

Result<std::string> getxattr(const View& view, InodeId inode, std::string_view name) {
  auto record = loadInode(view, inode);
  if (!record) return record.error();
  if (name == kLayoutXattr) {
    if (record->layout.empty()) return Errno(ENODATA);
    return striping::formatLayout(decodeLayoutOf(*record));
  }
  auto value = view.get(xattrKey(inode, name));
  if (!value) return Errno(ENODATA);
  return std::string(*value);
}

Result<std::vector<std::string>> listxattr(const View& view, InodeId inode) {
  auto record = loadInode(view, inode);
  if (!record) return record.error();
  std::vector<std::string> names;
  for (const auto& key : keysOf(view, xattrPrefix(inode))) names.emplace_back(xattrName(key));
  return names;
}

Layout inheritedLayout(const View& view, InodeId dir) {
  for (InodeId from : {dir, kRootInode}) {
    auto record = findInode(view, from);
    if (record && record->isDirectory() && !record->layout.empty()) return decodeLayoutOf(*record);
  }
  return striping::defaultLayout();
}

std::vector<SessionRecord> sessions(const View& view) {
  std::vector<SessionRecord> all;
  view.scan(sessionsPrefix(), sessionsPrefix(), [&](std::string_view key, std::string_view value) {
    all.push_back(decodeSession(sessionOfKey(key), value));
    return true;
  });
  return all;
}

std::optional<SessionId> endedWithHolds(const View& view) {
  for (auto relation : {Relation::kOrphan, Relation::kWriter}) {
    std::optional<SessionId> holder;
    auto see = [&](std::string_view key, std::string_view) {
      holder = SessionId{relatingId(key)};
      return false;
    };
    for (SessionId next{1};; next.value = holder->value + 1) {
      holder.reset();
      view.scan(bySessionPrefix(relation, next), allSessionsPrefix(relation), see);
      if (!holder) break;
      if (!view.get(sessionKey(*holder))) return holder;
    }
  }
  return std::nullopt;
}

std::vector<InodeId> writtenBy(const View& view, SessionId session) {
  return inodesOf(view, Relation::kWriter, session);
}

std::vector<SessionId> writersOf(const View& view, InodeId inode) {
  return sessionsOf(view, Relation::kWriter, inode);
}

std::vector<InodeId> orphansOf(const View& view, SessionId session) {
  return inodesOf(view, Relation::kOrphan, session);
}

std::vector<InodeId> madeUnnamed(const View& view, SessionId session) {
  std::vector<InodeId> made;
  auto prefix = slotsPrefix(session);
  view.scan(prefix, prefix, [&](std::string_view, std::string_view value) {
    auto outcome = decodeSlot(value).outcome;
    auto record = outcome.value == kMadeUnnamed ? findInode(view, outcome.inode) : std::nullopt;
    if (record && record->attributes.links == 0) made.push_back(outcome.inode);
    return true;
  });
  return made;
}

std::vector<Garbage> garbage(const View& view, size_t most, const Garbage* after) {
  std::vector<Garbage> all;
  auto from = garbagePrefix();
  if (after != nullptr) from = garbageKey(after->inode, after->layout.generation) + '\0';
  view.scan(from, garbagePrefix(), [&](std::string_view key, std::string_view value) {
    if (all.size() == most) return false;
    InodeId inode = inodeOfGarbageKey(key);
    auto layout = striping::decodeLayout(value);
    KJ_REQUIRE(layout.ok(), "damaged garbage record, or of a newer version", inode.value);
    all.push_back({inode, *std::move(layout)});
    return true;
  });
  return all;
}

std::vector<Command> truncations(const View& view) {
  std::vector<Command> all;
  view.scan(truncationsPrefix(), truncationsPrefix(),
            [&](std::string_view, std::string_view value) {
              all.push_back(decodeCommand(value));
              return true;
            });
  return all;
}

bool truncating(const View& view, InodeId inode) {
  return view.get(truncationKey(inode)).has_value();
}

std::vector<OstRecord> osts(const View& view) {
  std::vector<OstRecord> all;
  view.scan(kOstsPrefix, kOstsPrefix, [&](std::string_view, std::string_view value) {
    all.push_back(decodeOst(value));
    return true;
  });
  return all;
}

InodeId nextInode(const View& view) {
  return {number(view, kNextInodeKey)};
}

Time lastCommandTime(const View& view) {
  auto bytes = view.get(kClockKey);
  KJ_REQUIRE(bytes.has_value(), "the metadata store has no clock");
  return decodeTime(*bytes);
}

uint64_t appliedIndex(const View& view) {
  return number(view, kAppliedKey);
}
uint16_t mdtIndex(const View& view) {
  return static_cast<uint16_t>(number(view, kMdtIndexKey));
}

std::string fsname(const View& view) {
  auto name = view.get(kFsnameKey);
  KJ_REQUIRE(name.has_value(), "the metadata store lacks the file system's name");
  return std::string(*name);
}

}  // namespace trainfs::mds
