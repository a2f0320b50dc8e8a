// Locks of files, as fcntl(2) and flock(2) have them and as clients need them to append, and the
// bytes of one file that one owner has locked. Pure.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "trainfs/types.h"

namespace trainfs {

// Whose locks are apart, as on Linux's own file systems.
enum class LockKind : uint8_t {
  kRecord,  // fcntl(2): of a process (POSIX), or of an open file description (OFD)
  kWhole,   // flock(2): always of the whole file
  kAppend,  // of a mount that appends to the file (O_APPEND): always of the whole file
};
enum class LockMode : uint8_t { kShared, kExclusive };

inline constexpr uint64_t kLockLastByte =
    kFileBytesMax;  // "to the end", however long the file gets

struct LockRange {
  uint64_t first = 0;
  uint64_t last = kLockLastByte;  // belongs to it
  bool valid() const { return first <= last && last <= kLockLastByte; }
  friend bool operator==(const LockRange&, const LockRange&) = default;
};

struct FileLock {
  InodeId inode;
  LockKind kind = LockKind::kRecord;
  uint64_t owner = 0;  // the kernel's number of it, of one mount
  LockRange range;
  LockMode mode = LockMode::kShared;
  uint32_t process = 0;  // who is told to others: fcntl(2) F_GETLK
  friend bool operator==(const FileLock&, const FileLock&) = default;
};

class LockRanges {
 public:
  struct Lock {
    LockRange range;
    LockMode mode = LockMode::kShared;
    friend bool operator==(const Lock&, const Lock&) = default;
  };

  // Whatever these bytes were locked with before, they have this mode now.
  void lock(LockRange range, LockMode mode);
  void unlock(LockRange range);

  // The first lock that keeps another owner from locking `range` with `mode`.
  std::optional<Lock> conflict(LockRange range, LockMode mode) const;

  // All of the range is locked with just this mode.
  bool has(LockRange range, LockMode mode) const;

  bool anyExclusive() const { return exclusives_ != 0; }
  bool empty() const { return locks_.empty(); }
  size_t size() const { return locks_.size(); }
  std::vector<Lock> all() const;

 private:
  struct Rest {
    uint64_t last;
    LockMode mode;
  };
  using Locks = std::map<uint64_t, Rest>;
  void add(uint64_t first, Rest rest);
  Locks::iterator remove(Locks::iterator lock);

  Locks locks_;  // by first bytes; they do not overlap, and neighbours of one mode are one lock
  size_t exclusives_ = 0;
};

}  // namespace trainfs
