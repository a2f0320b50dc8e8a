#include "mds/keys.h"

#include <kj/debug.h>
#include <xxhash.h>

#include <concepts>

namespace trainfs::mds {
namespace {

constexpr size_t kEntryHeadBytes = 1 + 8 + 6 + 2;
constexpr size_t kLinkKeyBytes = 1 + 8 + 8 + 6 + 2;

template <std::unsigned_integral T>
void appendBigEndian(std::string& key, T value, size_t bytes = sizeof(T)) {
  for (size_t i = bytes; i-- > 0;) key.push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t readBigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

std::string tagged(std::string_view tag, uint64_t number) {
  std::string key;
  key.reserve(tag.size() + 2 * sizeof number);
  key.append(tag);
  appendBigEndian(key, number);
  return key;
}

std::string relationPrefix(Relation relation, char direction, uint64_t number) {
  const char tag[] = {static_cast<char>(relation), direction};
  return tagged({tag, sizeof tag}, number);
}

void requireRelation(std::string_view key) {
  KJ_REQUIRE(key.size() == 2 + 8 + 8, "orphan or write mark with a damaged key", key.size());
}

}  // namespace

std::string inodeKey(InodeId inode) {
  return tagged("I", inode.value);
}

uint64_t nameHash(uint64_t directorySeed, std::string_view name) {
  uint64_t hash = XXH3_64bits_withSeed(name.data(), name.size(), directorySeed) >> 16;
  return hash == 0 ? 1 : hash;
}

std::string directoryPrefix(InodeId directory) {
  return tagged("D", directory.value);
}

std::string entryHashPrefix(InodeId directory, uint64_t hash) {
  auto key = directoryPrefix(directory);
  appendBigEndian(key, hash, 6);
  return key;
}

std::string entryPlaceKey(InodeId directory, EntryPlace place) {
  auto key = entryHashPrefix(directory, place.hash);
  appendBigEndian(key, place.ordinal);
  return key;
}

std::string entryKey(InodeId directory, EntryPlace place, std::string_view name) {
  return entryPlaceKey(directory, place).append(name);
}

ParsedEntryKey parseEntryKey(std::string_view key) {
  KJ_REQUIRE(key.size() > kEntryHeadBytes && key[0] == 'D', "directory entry with a damaged key",
             key.size());
  return {
      {readBigEndian(key.substr(9, 6)), static_cast<uint16_t>(readBigEndian(key.substr(15, 2)))},
      key.substr(kEntryHeadBytes)};
}

NamePlace placeOfEntry(std::string_view entryKey) {
  return {{readBigEndian(entryKey.substr(1, 8))}, parseEntryKey(entryKey).place};
}

std::string linksPrefix(InodeId inode) {
  return tagged("L", inode.value);
}
std::string linkKey(InodeId inode, const NamePlace& at) {
  auto key = linksPrefix(inode);
  appendBigEndian(key, at.parent.value);
  appendBigEndian(key, at.place.hash, 6);
  appendBigEndian(key, at.place.ordinal);
  return key;
}
NamePlace placeOfLink(std::string_view key) {
  KJ_REQUIRE(key.size() == kLinkKeyBytes, "hard link with a damaged key", key.size());
  return {
      {readBigEndian(key.substr(9, 8))},
      {readBigEndian(key.substr(17, 6)), static_cast<uint16_t>(readBigEndian(key.substr(23, 2)))}};
}

std::string xattrPrefix(InodeId inode) {
  return tagged("X", inode.value);
}
std::string xattrKey(InodeId inode, std::string_view name) {
  return xattrPrefix(inode).append(name);
}
std::string_view xattrName(std::string_view key) {
  KJ_REQUIRE(key.size() > 1 + 8, "extended attribute with a damaged key", key.size());
  return key.substr(9);
}

std::string allSessionsPrefix(Relation relation) {
  return {static_cast<char>(relation), 's'};
}
std::string bySessionPrefix(Relation relation, SessionId session) {
  return relationPrefix(relation, 's', session.value);
}
std::string bySessionKey(Relation relation, SessionId session, InodeId inode) {
  auto key = bySessionPrefix(relation, session);
  appendBigEndian(key, inode.value);
  return key;
}
std::string byInodePrefix(Relation relation, InodeId inode) {
  return relationPrefix(relation, 'i', inode.value);
}
std::string byInodeKey(Relation relation, InodeId inode, SessionId session) {
  auto key = byInodePrefix(relation, inode);
  appendBigEndian(key, session.value);
  return key;
}
uint64_t relatingId(std::string_view key) {
  requireRelation(key);
  return readBigEndian(key.substr(2, 8));
}
uint64_t relatedId(std::string_view key) {
  requireRelation(key);
  return readBigEndian(key.substr(10));
}

std::string sessionsPrefix() {
  return "Sr";
}
std::string sessionKey(SessionId session) {
  return tagged("Sr", session.value);
}
SessionId sessionOfKey(std::string_view key) {
  KJ_REQUIRE(key.size() == 2 + 8, "session with a damaged key", key.size());
  return {readBigEndian(key.substr(2))};
}
std::string slotsPrefix(SessionId session) {
  return tagged("Ss", session.value);
}
std::string slotKey(SessionId session, uint16_t slot) {
  auto key = slotsPrefix(session);
  appendBigEndian(key, slot);
  return key;
}

std::string garbagePrefix() {
  return "G";
}
std::string truncationsPrefix() {
  return "T";
}
std::string truncationKey(InodeId inode) {
  return tagged("T", inode.value);
}

std::string changesPrefix() {
  return "K";
}
std::string changeKey(uint64_t index) {
  return tagged("K", index);
}
uint64_t indexOfChangeKey(std::string_view key) {
  KJ_REQUIRE(key.size() == 1 + 8, "changelog record with a damaged key", key.size());
  return readBigEndian(key.substr(1));
}

std::string garbageKey(InodeId inode, uint32_t generation) {
  auto key = tagged("G", inode.value);
  appendBigEndian(key, generation);
  return key;
}
InodeId inodeOfGarbageKey(std::string_view key) {
  KJ_REQUIRE(key.size() == 1 + 8 + 4, "garbage with a damaged key", key.size());
  return {readBigEndian(key.substr(1, 8))};
}

std::string ostKey(uint32_t index) {
  std::string key(kOstsPrefix);
  appendBigEndian(key, index);
  return key;
}

}  // namespace trainfs::mds
