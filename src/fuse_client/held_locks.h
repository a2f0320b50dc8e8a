// What callers of this mount have locked (fcntl, flock), as the MDS has said: to be claimed again
// from a server that has lost it, and to be let go of when a file is closed. Any thread.
//
// The kernel uses its numbers of owners again as soon as the last one who had it is gone, while
// something of his may still be on its way: an unlock, or a lock that nobody waits for any more. So
// the MDS is told names instead, each for one owner only.
#pragma once

#include <compare>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "trainfs/file_lock.h"

namespace trainfs::client {

class HeldLocks {
 public:
  using Handle = const void*;  // an open file description
  struct Owner {
    InodeId inode;
    LockKind kind;
    uint64_t number;  // the kernel's
    friend auto operator<=>(const Owner&, const Owner&) = default;
  };
  static Owner ownerOf(const FileLock& lock) { return {lock.inode, lock.kind, lock.owner}; }

  // The lock as the MDS is to be asked for it, until asked(). Nothing: the owner has lost another.
  std::optional<FileLock> ask(const FileLock& lock, Handle through);
  void asked(const Owner& owner, const FileLock& named);
  // False: it is not wanted any more, because the owner has gone or has lost another lock.
  bool granted(const Owner& owner, const FileLock& named);

  // The same for a lock that the owner may have. Nothing: he has none.
  std::optional<FileLock> named(const FileLock& lock);
  void released(const Owner& owner, const FileLock& named);
  // He lets go of all. What the MDS is to be told; nothing: it has nothing of him.
  std::optional<FileLock> close(const Owner& owner);
  // The MDS may have something else of him than is known here.
  void doubt(const Owner& owner, const FileLock& named);

  bool has(const Owner& owner);
  // He had something when the session was lost, or in doubt, and has not let go since.
  bool lost(const Owner& owner);
  // The description has ended. Those who have locked through it and through no other.
  std::vector<Owner> ended(InodeId inode, Handle handle);

  std::vector<FileLock> all();
  // All are gone. The files that they were of.
  std::set<InodeId> lose();

 private:
  struct Held {
    LockRanges ranges;
    uint32_t process = 0;
    std::set<Handle> handles;
    uint32_t asking = 0;  // calls whose callers wait
    bool lost = false;
  };
  using Map = std::map<Owner, Held>;
  struct Name {
    uint64_t name = 0;
    size_t files = 0;
  };

  Name& nameOf(const Owner& owner) { return names_[{owner.kind, owner.number}]; }
  Map::iterator find(const Owner& owner, uint64_t name);
  void forget(Map::iterator held);
  void forgetIfIdle(Map::iterator held);

  std::mutex mutex_;
  Map held_;
  // Over all files: the MDS looks for circles of owners. As long as there is one in held_.
  std::map<std::pair<LockKind, uint64_t>, Name> names_;
  uint64_t lastName_ = 0;
};

}  // namespace trainfs::client
