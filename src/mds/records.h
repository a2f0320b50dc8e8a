// Values of the metadata store: plain structs and their bytes. Little-endian; docs/format-mdt.md.
// Decoders throw kj::Exception naming the record when it is damaged or of a newer version: what the
// store gives back was written by us, so that is never a caller's fault.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mds/command.h"
#include "mds/namespace.h"
#include "trainfs/types.h"

namespace trainfs::mds {

// Of the whole store, under kFormatVersionKey. Entries, holds, marks and counters carry no version
// of their own; records that will grow fields do.
inline constexpr uint32_t kFormatVersion = 6;
// Version 1 did not know the way from an inode to its names, version 2 did not count settings,
// beside version 3 is a log of older commands, version 4 did not know OSTs' starts, and version 5
// knew neither ACLs nor inodes that were made without a name.
inline constexpr uint32_t kFormatVersionOldest = 6;

inline constexpr uint32_t kNanosecondsPerSecond = 1'000'000'000;
inline constexpr size_t kClientNameBytesMax = 1024;
inline constexpr size_t kOstTextBytesMax = 1024;  // uuid, host
inline constexpr size_t kOstPortsMax = 1024;

// What a directory's st_size and st_blocks say; as in Lustre it is one block, whatever is in it.
inline constexpr uint64_t kDirectoryBytes = 4096;

struct InodeRecord {
  Attributes attributes;
  // Where the inode is named first: the directory, and the cookie of the entry's place in it. Kept
  // by names.h. No inode: it has no names any more. Root: itself, 0.
  InodeId parent;
  uint64_t place = 0;
  bool linkable = false;  // made without a name, and may be given its first
  uint64_t hashSeed = 0;  // directories: of nameHash
  std::string target;     // symlinks
  // A layout record: of a regular file, or a directory's own default; empty: none. Kept encoded,
  // because most operations pass it through.
  std::string layout;

  bool isDirectory() const;
  bool isRegular() const;
};
std::string encodeInode(const InodeRecord& record);
InodeRecord decodeInode(InodeId inode, std::string_view bytes);
// Throws, naming the inode, if its layout record is damaged.
Layout decodeLayoutOf(const InodeRecord& record);

struct EntryRecord {
  InodeId inode;
  uint16_t mdt = 0;  // that has the inode now
  uint8_t type = 0;  // DT_*, <dirent.h>
};
std::string encodeEntry(const EntryRecord& entry);
EntryRecord decodeEntry(std::string_view bytes);

struct SlotRecord {
  uint64_t sequence = 0;
  Outcome outcome;
};
std::string encodeSlot(const SlotRecord& slot);
SlotRecord decodeSlot(std::string_view bytes);

std::string encodeSession(const SessionRecord& session);
SessionRecord decodeSession(SessionId id, std::string_view bytes);

std::string encodeOst(const OstRecord& ost);
OstRecord decodeOst(std::string_view bytes);

// Counters and numbers under 'C'.
std::string encodeTime(Time time);
Time decodeTime(std::string_view bytes);
std::string encodeNumber(uint64_t number);
uint64_t decodeNumber(std::string_view key, std::string_view bytes);

// Throws unless the store has been formatted, in a version that this program knows.
void requireFormat(const View& view, std::string_view where);

}  // namespace trainfs::mds
