// What callers of this mount have locked (fcntl, flock), as the MDS has said: to be claimed again
// from a server that has lost it, and to be let go of when a file is closed. Any thread.
#pragma once

#include <atomic>
#include <compare>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "trainfs/file_lock.h"

namespace trainfs::client {

class HeldLocks {
 public:
  using Handle = const void*;  // an open file description
  struct Owner {
    InodeId inode;
    LockKind kind;
    uint64_t number;
    friend auto operator<=>(const Owner&, const Owner&) = default;
  };
  static Owner ownerOf(const FileLock& lock) { return {lock.inode, lock.kind, lock.owner}; }

  void granted(const FileLock& lock, Handle through);
  void released(const FileLock& lock);
  void forget(const Owner& owner);

  bool has(const Owner& owner);
  // It had something when the session was lost, and has not let go since.
  bool lost(const Owner& owner);
  // Those who locked through the handle, and have not closed the file in any way since.
  std::vector<Owner> through(InodeId inode, Handle handle);

  std::vector<FileLock> all();
  // All are gone. The files that they were of.
  std::set<InodeId> lose();

  size_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Held {
    LockRanges ranges;
    uint32_t process = 0;
    std::set<Handle> handles;
    bool lost = false;
  };

  void recount(size_t before, size_t after) { count_ += after - before; }

  std::mutex mutex_;
  std::map<Owner, Held> held_;
  std::atomic<size_t> count_{0};  // ranges
};

}  // namespace trainfs::client
