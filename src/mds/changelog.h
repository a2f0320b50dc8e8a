// The changelog: what has changed, in order, for programs that follow the file system (indexers,
// mirrors, policy engines). Record types are those of Lustre, so that what reads its changelogs
// reads this. Written by the operations, in the transaction of the change itself, while at least
// one user is registered; a record stays until every user has cleared it. Keys: docs/format-mdt.md.
// Functions that take a Txn belong to apply(); the others read a snapshot, on any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mds/command.h"
#include "mds/store.h"
#include "trainfs/result.h"

namespace trainfs::mds {

// Numbers are stored, and shown: Lustre's enum changelog_rec_type.
enum class ChangeType : uint8_t {
  kCreate = 1,
  kMkdir = 2,
  kHardlink = 3,
  kSymlink = 4,
  kMknod = 5,
  kUnlink = 6,
  kRmdir = 7,
  kRename = 8,
  kClose = 11,  // of a file that had been open for writing
  kLayout = 12,
  kTruncate = 13,
  kSetattr = 14,
  kXattr = 15,
  kMtime = 17,
};

struct ChangeRecord {
  uint64_t index = 0;  // from 1, without gaps
  ChangeType type = ChangeType::kCreate;
  Time time;  // of the command; never goes back
  // unlink, rmdir, rename over something: that was its last link
  bool lastLink = false;
  // Who asked. Not known of closes, which the client tells when it finds the time.
  bool hasOwner = false;
  uint32_t uid = 0, gid = 0;
  InodeId target;  // what changed; rename: what the new name had stood for, 0: nothing
  InodeId parent;  // and `name`: changes of names; rename: the new one
  std::string name;
  InodeId source, sourceParent;  // rename: what moved, and from where
  std::string sourceName;
  std::string xattr;  // kXattr: which
};

struct ChangelogUser {
  uint32_t id = 0;  // from 1, never used again; shown as "cl1"
  std::string name;
  uint64_t cleared = 0;  // every record up to this one
  Time lastUse;          // registered or cleared
};

struct ChangelogUsers {
  uint32_t nextId = 1;
  std::vector<ChangelogUser> users;  // by id
};

inline constexpr size_t kChangelogUsersMax = 64;
inline constexpr size_t kChangelogNameBytesMax = 255;
// Records that one command erases; a trimming of more goes on with further commands.
inline constexpr size_t kTrimmedAtOnce = 1024;
// Of one answer, whatever was asked for.
inline constexpr size_t kChangesReadMax = 4096;

// `change` without index, time and owner, which are the command's. Nothing happens while nobody is
// registered.
void logChange(Txn& txn, const Command& command, ChangeRecord change);

// Records `first`, or the oldest one after it that there is, and on; at most `most`.
std::vector<ChangeRecord> readChangelog(const View& view, uint64_t first, size_t most);
uint64_t lastChange(const View& view);  // the index of the newest record ever, 0: none
ChangelogUsers changelogUsers(const View& view);

// Whether there are records that no user waits for.
bool hasClearedChanges(const View& view);

void putChangelogUsers(Txn& txn, const ChangelogUsers& users);
// The newest record that every user has cleared; all of them, when there is no user.
uint64_t clearedByAll(const View& view, const ChangelogUsers& users);

std::string encodeChange(const ChangeRecord& change);
// Throws, naming the record, if it is damaged. Bytes are those of encodeChange().
ChangeRecord decodeChange(uint64_t index, std::string_view bytes);

}  // namespace trainfs::mds
