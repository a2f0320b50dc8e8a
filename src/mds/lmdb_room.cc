#include "mds/lmdb_room.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace trainfs::mds {
namespace {

// A file system, or a map, that was full is asked again after this.
constexpr auto kPause = std::chrono::seconds(1);
// Below this share of the reserve nothing is taken on any more: 1/16 of 64 MiB is a thousand pages.
constexpr uint64_t kNoneShare = 16;

MDB_envinfo infoOf(MDB_env* env) {
  MDB_envinfo info{};
  int code = mdb_env_info(env, &info);
  KJ_REQUIRE(code == 0, "the metadata store cannot be asked for its size", mdb_strerror(code));
  return info;
}

}  // namespace

uint64_t LmdbRoom::usedBytes() const {
  return (infoOf(env_).me_last_pgno + 1) * pageBytes_;
}

Room LmdbRoom::make(uint64_t pinned) {
  uint64_t used = usedBytes();
  auto ahead = [&] { return allocatedEnd_ > used ? allocatedEnd_ - used : 0; };
  auto now = std::chrono::steady_clock::now();
  auto isShort = [&] { return ahead() < reserveBytes_ / 4 * 3; };
  if (isShort() && now >= askAgain_) {
    allocatedEnd_ = std::max(allocatedEnd_, allocate(used));
    if (isShort()) askAgain_ = now + kPause;
  }
  uint64_t room = ahead() + (isShort() ? freeBytes(pinned) : 0);
  isScarce_ = room <= (isScarce_ ? reserveBytes_ / 4 * 3 : reserveBytes_ / 2);
  return !isScarce_                          ? Room::kPlenty
         : room > reserveBytes_ / kNoneShare ? Room::kReserve
                                             : Room::kNone;
}

// Up to where there is disk for the file, and map. As much as there is, if that is less.
uint64_t LmdbRoom::allocate(uint64_t from) {
  int fd = -1;
  mdb_env_get_fd(env_, &fd);
  uint64_t mapBytes = infoOf(env_).me_mapsize;
  for (uint64_t wanted = reserveBytes_; wanted >= pageBytes_; wanted /= 2) {
    uint64_t end = std::min(from + wanted, mapBytes);
    if (end <= from) return from;
    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
                  static_cast<off_t>(end - from)) == 0)
      return end;
    if (errno == EOPNOTSUPP || errno == ENOSYS) {  // nothing can be kept there; see what there is
      struct statvfs status{};
      if (fstatvfs(fd, &status) != 0) return from;
      return std::min(end, from + uint64_t{status.f_bavail} * status.f_frsize);
    }
    if (errno != ENOSPC && errno != EDQUOT && errno != EINTR) return from;
  }
  return from;
}

// Of pages within the file that a transaction may use again. The free list is a table of LMDB's
// own: transaction -> number of pages, pages.
uint64_t LmdbRoom::freeBytes(uint64_t pinned) const {
  constexpr MDB_dbi kFreeList = 0;
  MDB_txn* txn = nullptr;
  if (mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn) != 0) return 0;
  MDB_cursor* cursor = nullptr;
  uint64_t pages = 0;
  if (mdb_cursor_open(txn, kFreeList, &cursor) == 0) {
    MDB_val key, value;
    while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
      size_t freedBy = 0, count = 0;
      if (key.mv_size == sizeof freedBy) std::memcpy(&freedBy, key.mv_data, sizeof freedBy);
      if (freedBy >= pinned) break;
      if (value.mv_size >= sizeof count) std::memcpy(&count, value.mv_data, sizeof count);
      pages += count;
    }
    mdb_cursor_close(cursor);
  }
  mdb_txn_abort(txn);
  return pages * pageBytes_;
}

}  // namespace trainfs::mds
