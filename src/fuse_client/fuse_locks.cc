// FUSE handlers for advisory locks. Those that wait keep their place in the kernel's ring, of which
// there are few, but no thread.
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "fuse_client/client.h"
#include "fuse_client/fuse_ops.h"
#include "fuse_client/fuse_request.h"

namespace trainfs::client {

namespace {

// A place in the ring of the thread that this runs on, taken by a request that waits. Some are left
// for everything else: what the others wait for comes through the same ring, and so do reads and
// writes, which may wait, too (fuse_file.cc).
class RingPlace {
 public:
  // Null: too many wait.
  static std::shared_ptr<RingPlace> take(uint32_t depth) {
    thread_local auto taken = std::make_shared<std::atomic<uint32_t>>(0);
    if (*taken >= std::max(1u, depth / 4)) return nullptr;
    return std::make_shared<RingPlace>(taken);
  }
  explicit RingPlace(std::shared_ptr<std::atomic<uint32_t>> taken) : taken_(std::move(taken)) {
    ++*taken_;
  }
  ~RingPlace() { --*taken_; }
  RingPlace(const RingPlace&) = delete;

 private:
  std::shared_ptr<std::atomic<uint32_t>> taken_;
};

void complainOnce(uint32_t depth) {
  static std::atomic_flag told;
  if (!told.test_and_set())
    spdlog::warn(
        "too many callers wait for locks at once: ENOLCK for some; io_uring_q_depth={} limits them",
        depth);
}

const OpenHandle* handleOf(fuse_file_info* file) {
  return reinterpret_cast<const OpenHandle*>(file->fh);
}

LockRange rangeOf(const struct flock& lock) {
  auto first = static_cast<uint64_t>(lock.l_start);
  if (lock.l_len == 0) return {first, kLockLastByte};
  return {first, first + static_cast<uint64_t>(lock.l_len) - 1};
}

FileLock recordLock(fuse_req_t req, fuse_ino_t node, fuse_file_info* file,
                    const struct flock& lock) {
  return {.inode = inodeOf(req, node),
          .kind = LockKind::kRecord,
          .owner = file->lock_owner,
          .range = rangeOf(lock),
          .mode = lock.l_type == F_WRLCK ? LockMode::kExclusive : LockMode::kShared,
          .process = static_cast<uint32_t>(lock.l_pid)};
}

void take(fuse_req_t req, const OpenHandle* handle, const FileLock& lock, bool waits) {
  auto request = Request::begin(req);
  auto& client = request->client();
  if (client.locking() == Locking::kNone) return request->error(ENOSYS);
  std::shared_ptr<RingPlace> place;
  if (uint32_t depth = client.kernelFeatures().uringQueueDepth;
      waits && depth != 0 && fuse_req_is_uring(req)) {
    place = RingPlace::take(depth);
    if (!place) {
      complainOnce(depth);
      return request->error(ENOLCK);
    }
  }
  auto asking = client.locks().lock(lock, handle, waits, [request, place](Status status) {
    if (status) return request->succeed();
    request->error(status.error().code());
    return true;
  });
  if (!asking) return;
  request->onGiveUp([&client, asking] { client.locks().abandon(*asking); });
  if (waits) request->onSignal([&client, asking] { client.locks().giveUp(*asking); });
}

void drop(fuse_req_t req, const FileLock& lock) {
  auto request = Request::begin(req);
  if (request->client().locking() == Locking::kNone) return request->error(ENOSYS);
  request->client().locks().unlock(
      lock, [request](Status status) { request->error(status.errnoOrZero()); });
}

void getlk(fuse_req_t req, fuse_ino_t node, fuse_file_info* file, struct flock* lock) {
  auto request = Request::begin(req);
  if (request->client().locking() == Locking::kNone) return request->error(ENOSYS);
  request->client().locks().test(recordLock(req, node, file, *lock),
                                 [request](Result<std::optional<FileLock>> found) {
                                   if (!found) return request->error(found.error().code());
                                   request->lock(*found);
                                 });
}

void setlk(fuse_req_t req, fuse_ino_t node, fuse_file_info* file, struct flock* lock, int waits) {
  auto wanted = recordLock(req, node, file, *lock);
  if (lock->l_type == F_UNLCK) return drop(req, wanted);
  take(req, handleOf(file), wanted, waits != 0);
}

// The owner is the open file description. The kernel's number of it may be that of the next one
// before this client is told of the end of the last: the handle is not.
void flock(fuse_req_t req, fuse_ino_t node, fuse_file_info* file, int operation) {
  FileLock wanted{.inode = inodeOf(req, node),
                  .kind = LockKind::kWhole,
                  .owner = file->fh,
                  .range = {},
                  .mode = (operation & LOCK_EX) != 0 ? LockMode::kExclusive : LockMode::kShared,
                  .process = static_cast<uint32_t>(fuse_req_ctx(req)->pid)};
  if ((operation & LOCK_UN) != 0) return drop(req, wanted);
  take(req, handleOf(file), wanted, (operation & LOCK_NB) == 0);
}

}  // namespace

void addLockOps(fuse_lowlevel_ops& ops) {
  ops.getlk = getlk;
  ops.setlk = setlk;
  ops.flock = flock;
}

}  // namespace trainfs::client
