// Inodes in the store: their records, links, and what happens when the last link and the last
// holder go. Used by the operations inside one transaction; the writer's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "mds/keys.h"
#include "mds/records.h"
#include "mds/store.h"
#include "trainfs/result.h"

namespace trainfs::mds {

std::optional<InodeRecord> findInode(const View& view, InodeId inode);
Result<InodeRecord> loadInode(const View& view, InodeId inode);  // ESTALE: no such inode
// ESTALE, ENOTDIR.
Result<InodeRecord> loadDirectory(const View& view, InodeId inode);
// Also ENOENT if it is removed and only held open: nothing may be made in it any more.
Result<InodeRecord> loadLinkedDirectory(const View& view, InodeId inode);
void putInode(Txn& txn, const InodeRecord& record);

// An entry came or went: POSIX wants the directory's last data modification and status change
// marked.
void touchDirectory(InodeRecord& directory, Time now);

using Holders = std::vector<std::pair<InodeId, SessionId>>;

// Takes one link from a file, or all from an (empty) directory. If that was the last, the inode
// becomes an orphan of those holders that are live sessions, or goes. Returns whether the inode is
// still there.
bool dropLink(Txn& txn, InodeRecord record, const Holders& holders, Time now);

// ---- orphans and write marks ----

bool related(const View& view, Relation relation, SessionId session, InodeId inode);
void relate(Txn& txn, Relation relation, SessionId session, InodeId inode);
void unrelate(Txn& txn, Relation relation, SessionId session, InodeId inode);
void unrelateAll(Txn& txn, Relation relation, InodeId inode);
std::vector<InodeId> inodesOf(const View& view, Relation relation, SessionId session,
                              size_t most = SIZE_MAX);
std::vector<SessionId> sessionsOf(const View& view, Relation relation, InodeId inode);

// The session has no handle of the inode any more: its write mark and its hold go, and the inode
// with the last hold.
void releaseHold(Txn& txn, SessionId session, InodeId inode);

// The objects of what is instantiated in the layout are to be destroyed.
void putGarbage(Txn& txn, InodeId inode, const Layout& layout);

// Keys that start with `prefix`.
std::vector<std::string> keysOf(const View& view, std::string_view prefix, size_t most = SIZE_MAX);

}  // namespace trainfs::mds
