// Keys of the metadata store. Integers big-endian, so that byte order is number order. Prose and
// the reasons: docs/format-mdt.md. At most 9 + 8 + 255 bytes; LMDB takes 511.
//   'I' inode                            inode record
//   'D' directory hash:48 ordinal:16 name    entry record; readdir is a scan
//   'L' inode directory hash:48 ordinal:16   a further name of a file (hard link)
//   'X' inode name                       extended attribute
//   'O' 'i' inode session, 'O' 's' session inode    hold on an orphan, both ways round
//   'W' 'i' inode session, 'W' 's' session inode    write mark, both ways round
//   'S' 'r' session                      session record
//   'S' 's' session slot:16              slot record
//   'G' inode generation:32              layout record of objects to be destroyed
//   'C' name                             configuration and counters
//   'C' "ost/" index:32                  OST record
//   'K' index                            changelog record
//   'T' inode                            truncation under way: its command
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trainfs/types.h"

namespace trainfs::mds {

std::string inodeKey(InodeId inode);

// ---- directory entries ----

// Where an entry is in its directory: the readdir cookie is hash (48 bits) and ordinal (15 bits)
// together. The ordinal tells names of equal hash apart. Neither changes while the entry lives.
struct EntryPlace {
  uint64_t hash = 1;     // 1 .. 2^48-1: never 0, so that cookies are > 2
  uint16_t ordinal = 0;  // < kOrdinalsMax
  uint64_t cookie() const { return hash << 15 | ordinal; }
  static EntryPlace fromCookie(uint64_t cookie) {
    return {cookie >> 15, static_cast<uint16_t>(cookie & 0x7fff)};
  }
};
inline constexpr uint32_t kOrdinalsMax = 1u << 15;
inline constexpr uint64_t kCookieMax = (uint64_t{1} << 63) - 1;

// XXH3 of the name, seeded with the directory's own seed so that collisions found in one directory
// are worth nothing in another.
uint64_t nameHash(uint64_t directorySeed, std::string_view name);

std::string directoryPrefix(InodeId directory);
std::string entryHashPrefix(InodeId directory, uint64_t hash);
std::string entryPlaceKey(InodeId directory, EntryPlace place);  // before every name at that place
std::string entryKey(InodeId directory, EntryPlace place, std::string_view name);

struct ParsedEntryKey {
  EntryPlace place;
  std::string_view name;  // into the key
};
ParsedEntryKey parseEntryKey(std::string_view key);

// The entry that names an inode: which directory it is in, and where.
struct NamePlace {
  InodeId parent;
  EntryPlace place;
};
NamePlace placeOfEntry(std::string_view entryKey);

// ---- hard links: where a file is named besides the name in its record ----

std::string linksPrefix(InodeId inode);
std::string linkKey(InodeId inode, const NamePlace& at);
NamePlace placeOfLink(std::string_view key);

// ---- extended attributes ----

std::string xattrPrefix(InodeId inode);
std::string xattrKey(InodeId inode, std::string_view name);
std::string_view xattrName(std::string_view key);

// ---- relations between inodes and sessions: kept both ways round ----

enum class Relation : char { kOrphan = 'O', kWriter = 'W' };

std::string allSessionsPrefix(Relation relation);
std::string bySessionPrefix(Relation relation, SessionId session);
std::string bySessionKey(Relation relation, SessionId session, InodeId inode);
std::string byInodePrefix(Relation relation, InodeId inode);
std::string byInodeKey(Relation relation, InodeId inode, SessionId session);
uint64_t relatingId(std::string_view key);  // the first number in either form
uint64_t relatedId(std::string_view key);   // the last one

// ---- sessions, garbage, configuration ----

std::string sessionsPrefix();
std::string sessionKey(SessionId session);
SessionId sessionOfKey(std::string_view key);
std::string slotsPrefix(SessionId session);
std::string slotKey(SessionId session, uint16_t slot);

std::string garbagePrefix();
std::string garbageKey(InodeId inode, uint32_t generation);
InodeId inodeOfGarbageKey(std::string_view key);

std::string truncationsPrefix();
std::string truncationKey(InodeId inode);

std::string changesPrefix();
std::string changeKey(uint64_t index);
uint64_t indexOfChangeKey(std::string_view key);

inline constexpr std::string_view kFormatVersionKey = "Cversion";
inline constexpr std::string_view kFsnameKey = "Cfsname";
inline constexpr std::string_view kMdtIndexKey = "Cmdt";
inline constexpr std::string_view kNextInodeKey = "CnextInode";
inline constexpr std::string_view kNextSessionKey = "CnextSession";
inline constexpr std::string_view kEpochKey = "Cepoch";
inline constexpr std::string_view kAppliedKey = "Capplied";
inline constexpr std::string_view kClockKey = "Cclock";
inline constexpr std::string_view kChangelogUsersKey = "CchangelogUsers";
inline constexpr std::string_view kNextChangelogUserKey = "CnextChangelogUser";
inline constexpr std::string_view kLastChangeKey = "ClastChange";
inline constexpr std::string_view kOstsPrefix = "Cost/";
std::string ostKey(uint32_t index);

}  // namespace trainfs::mds
