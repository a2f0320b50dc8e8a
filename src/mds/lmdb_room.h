// How much an LMDB environment can still grow, and the disk that is kept for it ahead of its end:
// blocks allocated beyond the file's size are the file's, whoever else fills the file system.
// The store writer's; usedBytes() on any thread. Belongs to lmdb_store.
#pragma once

#include <lmdb.h>

#include <chrono>
#include <cstdint>

#include "mds/store.h"

namespace trainfs::mds {

class LmdbRoom {
 public:
  LmdbRoom(MDB_env* env, uint64_t pageBytes, uint64_t reserveBytes)
      : env_(env), pageBytes_(pageBytes), reserveBytes_(reserveBytes) {}

  // Pages that transactions before `pinned` have freed can be used again, later ones cannot.
  Room make(uint64_t pinned);
  uint64_t usedBytes() const;

 private:
  uint64_t allocate(uint64_t from);
  uint64_t freeBytes(uint64_t pinned) const;

  MDB_env* env_;
  const uint64_t pageBytes_, reserveBytes_;
  uint64_t allocatedEnd_ = 0;
  bool isScarce_ = false;  // until there is clearly more again, so that it does not flutter
  std::chrono::steady_clock::time_point askAgain_{};
};

}  // namespace trainfs::mds
