#include "mds/changelog.h"

#include <kj/debug.h>

#include <algorithm>

#include "mds/keys.h"
#include "mds/records.h"
#include "trainfs/codec.h"

namespace trainfs::mds {
namespace {

constexpr uint8_t kChangeVersion = 1;
constexpr uint8_t kUsersVersion = 1;

void put(Writer& writer, Time time) {
  writer.put(time.seconds).put(time.nanoseconds);
}

Time getTime(Reader& reader) {
  auto seconds = reader.get<int64_t>();
  return {seconds, reader.get<uint32_t>()};
}

// What of a session's command is told by no request of an application.
bool hasOwner(const Operation& op) {
  return !std::holds_alternative<ReportOp>(op) && !std::holds_alternative<ReleaseOp>(op);
}

}  // namespace

std::string encodeChange(const ChangeRecord& change) {
  Writer writer;
  writer.put(kChangeVersion).put(static_cast<uint8_t>(change.type));
  put(writer, change.time);
  writer.put(static_cast<uint8_t>(change.lastLink)).put(static_cast<uint8_t>(change.hasOwner));
  writer.put(change.uid).put(change.gid);
  writer.put(change.target.value).put(change.parent.value).putString(change.name);
  writer.put(change.source.value).put(change.sourceParent.value).putString(change.sourceName);
  writer.putString(change.xattr);
  return writer.take();
}

ChangeRecord decodeChange(uint64_t index, std::string_view bytes) {
  ChangeRecord change{.index = index};
  Reader reader(bytes);
  auto version = reader.get<uint8_t>();
  KJ_REQUIRE(version <= kChangeVersion, "a changelog record of a newer version", index, version);
  change.type = static_cast<ChangeType>(reader.get<uint8_t>());
  change.time = getTime(reader);
  change.lastLink = reader.get<uint8_t>() != 0;
  change.hasOwner = reader.get<uint8_t>() != 0;
  change.uid = reader.get<uint32_t>();
  change.gid = reader.get<uint32_t>();
  change.target = {reader.get<uint64_t>()};
  change.parent = {reader.get<uint64_t>()};
  change.name = reader.getString(kNameBytesMax);
  change.source = {reader.get<uint64_t>()};
  change.sourceParent = {reader.get<uint64_t>()};
  change.sourceName = reader.getString(kNameBytesMax);
  change.xattr = reader.getString(kXattrNameBytesMax);
  KJ_REQUIRE(version != 0 && reader.finished(), "damaged changelog record", index, bytes.size());
  return change;
}

void logChange(Txn& txn, const Command& command, ChangeRecord change) {
  if (!txn.get(kChangelogUsersKey)) return;
  change.index = lastChange(txn) + 1;
  change.time = command.now;
  if ((change.hasOwner = hasOwner(command.op))) {
    change.uid = command.identity.uid;
    change.gid = command.identity.gid;
  }
  txn.put(changeKey(change.index), encodeChange(change));
  txn.put(kLastChangeKey, encodeNumber(change.index));
}

std::vector<ChangeRecord> readChangelog(const View& view, uint64_t first, size_t most) {
  std::vector<ChangeRecord> changes;
  most = std::min(most, kChangesReadMax);
  view.scan(changeKey(first), changesPrefix(), [&](std::string_view key, std::string_view bytes) {
    if (changes.size() == most) return false;
    changes.push_back(decodeChange(indexOfChangeKey(key), bytes));
    return true;
  });
  return changes;
}

uint64_t lastChange(const View& view) {
  auto bytes = view.get(kLastChangeKey);
  return bytes ? decodeNumber(kLastChangeKey, *bytes) : 0;
}

// Without users the key is not there, so that a change asks for one key only. The next id outlives
// them, under a key of its own.
ChangelogUsers changelogUsers(const View& view) {
  ChangelogUsers all;
  if (auto bytes = view.get(kNextChangelogUserKey))
    all.nextId = decodeNumber(kNextChangelogUserKey, *bytes);
  auto bytes = view.get(kChangelogUsersKey);
  if (!bytes) return all;
  Reader reader(*bytes);
  auto version = reader.get<uint8_t>();
  KJ_REQUIRE(version <= kUsersVersion, "changelog users of a newer version", version);
  auto count = reader.get<uint32_t>();
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    ChangelogUser user{.id = reader.get<uint32_t>(), .name = {}, .lastUse = {}};
    user.name = reader.getString(kChangelogNameBytesMax);
    user.cleared = reader.get<uint64_t>();
    user.lastUse = getTime(reader);
    all.users.push_back(std::move(user));
  }
  KJ_REQUIRE(version != 0 && reader.finished(), "damaged record of the changelog's users",
             bytes->size());
  return all;
}

void putChangelogUsers(Txn& txn, const ChangelogUsers& all) {
  txn.put(kNextChangelogUserKey, encodeNumber(all.nextId));
  if (all.users.empty()) return txn.erase(kChangelogUsersKey);
  Writer writer;
  writer.put(kUsersVersion).put(static_cast<uint32_t>(all.users.size()));
  for (auto& user : all.users) {
    writer.put(user.id).putString(user.name).put(user.cleared);
    put(writer, user.lastUse);
  }
  txn.put(kChangelogUsersKey, writer.take());
}

uint64_t clearedByAll(const View& view, const ChangelogUsers& all) {
  uint64_t cleared = lastChange(view);
  for (auto& user : all.users) cleared = std::min(cleared, user.cleared);
  return cleared;
}

bool hasClearedChanges(const View& view) {
  auto oldest = readChangelog(view, 0, 1);
  return !oldest.empty() && oldest[0].index <= clearedByAll(view, changelogUsers(view));
}

}  // namespace trainfs::mds
