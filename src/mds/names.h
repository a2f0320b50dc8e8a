// From an inode back to its names. The place of one name is in the inode record; every further one
// (hard links) has a key of its own. Kept by the operations that make, move and remove entries, in
// the same transaction; read on snapshots.
#pragma once

#include <string_view>

#include "mds/keys.h"
#include "mds/records.h"
#include "mds/store.h"
#include "trainfs/inode_names.h"
#include "trainfs/result.h"

namespace trainfs::mds {

// ---- for the operations; the caller stores the record afterwards ----

// An entry names the inode now, and one of its links is counted for it.
void addName(Txn& txn, InodeRecord& record, std::string_view entryKey);
// To be called before the link is taken away.
void dropName(Txn& txn, InodeRecord& record, std::string_view entryKey);
void moveName(Txn& txn, InodeRecord& record, std::string_view fromKey, std::string_view toKey);

// ---- for the server ----

inline constexpr size_t kNamesPageBytesMax = 32 * kKiB;  // of names and paths: the page is full
inline constexpr size_t kPathBytesMax = 16 * kKiB;

// The names of an inode that are below `root` (itself is "/", without parent and name). A page may
// be empty before the end. What is renamed between two pages may be missed or seen twice. ESTALE:
// no such inode, or it has no names any more.
Result<NamesPage> namesOf(const View& view, InodeId inode, InodeId root, NameCursor after);

}  // namespace trainfs::mds
