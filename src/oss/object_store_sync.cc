// How objects become dirty, clean and gone, durably.
//
// Dirty: before the first change to a clean object its record is marked so, synchronously; an
// object without a record is dirty anyway. Clean: the data is flushed, the directory entry too,
// unknown sums are made from what the file holds, and only then a record says so. A sync goes along
// with reads but excludes changes, so what it calls clean is what it flushed.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "oss/object_store.h"
#include "trainfs/bulk.h"
#include "trainfs/logging.h"
#include "trainfs/object_id.h"

namespace trainfs::oss {

using Mode = RangeLocks::Mode;

Task<Status> ObjectStore::commit(IndexChange change) {
  int error = co_await ForeignCall<int>(reactor_, [this, &change](ForeignCall<int>::Done done) {
    index_.change(std::move(change), std::move(done));
  });
  if (error != 0) co_return Errno(error);
  co_return Done{};
}

Task<Status> ObjectStore::beginChange(Object& object, uint64_t dropFirst, uint64_t dropEnd) {
  auto needed = [&] {
    bool drops = dropEnd > dropFirst && object.hasRecord && !object.sums.inDoubt();
    return !object.dirty || drops;
  };
  if (!needed()) co_return Done{};
  co_await object.loading.acquire();
  Status status = Done{};
  if (needed()) {
    status = co_await commit({.kind = IndexChange::Kind::kMarkDirty,
                              .object = object.id,
                              .dropFirst = dropFirst,
                              .dropEnd = dropEnd});
    if (status && !object.dirty) {
      object.dirty = true;
      ++dirtyCount_;
    }
    if (object.dirty) noteChanged(object);
  }
  object.loading.release();
  co_return status;
}

void ObjectStore::noteChanged(Object& object) {
  object.changed = std::chrono::steady_clock::now();
  if (object.cleaning) return;  // queued again when that is over
  if (object.dirtyQueued)
    dirty_.splice(dirty_.end(), dirty_, object.inDirty);
  else
    object.inDirty = dirty_.insert(dirty_.end(), &object);
  object.dirtyQueued = true;
}

void ObjectStore::setClean(Object& object) {
  if (!object.dirty) return;
  object.dirty = false;
  --dirtyCount_;
  if (object.dirtyQueued) dirty_.erase(object.inDirty);
  object.dirtyQueued = false;
}

Task<ObjectStore::Existed> ObjectStore::sync(ObjectId id) {
  Pin object(*this, stateOf(id));
  if (auto status = co_await ensureLoaded(*object); !status) co_return status.error();
  if (object->missing()) co_return false;
  if (auto status = co_await syncRound(*object); !status) co_return status.error();
  co_return true;
}

// All that ask before a round has begun share it.
Task<Status> ObjectStore::syncRound(Object& object) {
  if (auto round = object.nextSync) {
    co_await round->done;
    co_return round->status;
  }
  auto round = std::make_shared<Round>(reactor_);
  object.nextSync = round;
  auto hold = co_await object.locks.take(Mode::kSync, {});
  object.nextSync = nullptr;
  round->status = co_await makeClean(object);
  round->done.set();
  co_return round->status;
}

Task<Status> ObjectStore::makeClean(Object& object) {
  if (!object.dirty || object.missing()) co_return Done{};
  int result = co_await reactor_.operate(
      [&](io_uring_sqe* sqe) { io_uring_prep_fsync(sqe, object.fd, IORING_FSYNC_DATASYNC); });
  if (result < 0) {
    spdlog::error("{}: object {}: fdatasync: {}", name_, objectIdHex(object.id), strerror(-result));
    co_return Errno(-result);
  }
  if (object.entryUnsynced) {
    if (auto status = co_await syncDirectory(directoryOf(object.id)); !status) co_return status;
    object.entryUnsynced = false;
  }
  if (auto status = co_await sumUnknown(object); !status) co_return status;

  IndexChange change{.kind = IndexChange::Kind::kClean,
                     .object = object.id,
                     .record = {false, object.version + 1, object.sizeBytes}};
  if (object.sums.inDoubt()) change.dropEnd = ~uint64_t{0};
  for (auto& [number, chunk] : object.sums.chunks())
    if (chunk.changed) change.chunks.emplace(number, BlockSums::stored(chunk));
  if (auto status = co_await commit(std::move(change)); !status) co_return status;
  ++object.version;
  object.hasRecord = true;
  object.sums.markStored();
  object.sums.trustAll();
  if (object.sums.chunks().size() > kChunksKeptMax) object.sums.clear();  // they are in the index
  setClean(object);
  co_return Done{};
}

// Brings in the chunks that may hold something other than zeros.
Status ObjectStore::findDoubtful(Object& object) {
  constexpr uint64_t kChunkBytes = kChunkBlocks * kBlockBytes;
  for (uint64_t at = 0; at < object.sizeBytes;) {
    off_t data = lseek(object.fd, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    if (data < 0) return Errno(EIO);
    uint64_t chunk = data / kChunkBytes;
    if (chunk * kChunkBytes < object.sizeBytes && !object.sums.has(chunk))
      object.sums.loadUnknown(chunk, object.sizeBytes);
    at = (chunk + 1) * kChunkBytes;
  }
  if (object.sizeBytes % kBlockBytes == 0) return Done{};
  uint64_t last = object.sizeBytes / kBlockBytes;  // a short block of zeros has a sum of its own
  return ensureChunks(object, last, last + 1);
}

// Goes round: a read beside may bring in a chunk of an object in doubt, with unknown sums, behind `from`.
static std::optional<uint64_t> nextUnknownAround(const BlockSums& sums, uint64_t from) {
  auto next = sums.nextUnknown(from);
  return next ? next : sums.nextUnknown(0);
}

Task<Status> ObjectStore::sumUnknown(Object& object) {
  if (object.sums.inDoubt())
    if (auto status = findDoubtful(object); !status) co_return status;
  if (!object.sums.nextUnknown(0)) co_return Done{};
  co_await scratchPermits_.acquire();
  auto memory = std::move(scratch_.back());
  scratch_.pop_back();
  Status status = Done{};
  for (auto block = object.sums.nextUnknown(0); block && status;
       block = nextUnknownAround(object.sums, *block + 1)) {
    // As many neighbours as fit, so that a whole object is read in large pieces.
    uint64_t count = 1;
    while (count < kScratchBytes / kBlockBytes &&
           object.sums.nextUnknown(*block + count) == *block + count)
      ++count;
    uint64_t begin = *block * kBlockBytes;
    size_t want = std::min(count * kBlockBytes, object.sizeBytes - begin);
    auto bytes = co_await readFully(object.fd, begin, {memory.get(), want});
    if (!bytes || *bytes != want) {
      spdlog::error("{}: object {}: summing {} bytes at {}: {}", name_, objectIdHex(object.id),
                    want, begin, bytes ? "file is too short" : strerror(bytes.error().code()));
      status = Errno(EIO);
      break;
    }
    for (size_t done = 0; done < want; done += kBlockBytes)
      object.sums.set((begin + done) / kBlockBytes,
                      blockSum(memory.get() + done, std::min<size_t>(kBlockBytes, want - done)));
  }
  scratch_.push_back(std::move(memory));
  scratchPermits_.release();
  co_return status;
}

Task<Status> ObjectStore::syncDirectory(uint16_t directory) {
  auto& state = directorySyncs_.try_emplace(directory, reactor_).first->second;
  if (auto round = state.next) {
    co_await round->done;
    co_return round->status;
  }
  auto round = std::make_shared<Round>(reactor_);
  state.next = round;
  co_await state.turn.acquire();
  state.next = nullptr;
  round->status = co_await syncDirectoryNow(directory);
  state.turn.release();
  round->done.set();
  co_return round->status;
}

Task<Status> ObjectStore::syncDirectoryNow(uint16_t directory) {
  char parts[2][4];
  std::snprintf(parts[0], sizeof parts[0], "/%02x", directory >> 8);
  std::snprintf(parts[1], sizeof parts[1], "/%02x", directory & 0xff);
  std::string top = directory_ + "/objects", middle = top + parts[0];
  if (auto status = co_await syncPath(middle + parts[1]); !status) co_return status;
  if (durableDirectories_[directory]) co_return Done{};
  // It, or the one above, may have been made lately, by us or by another worker.
  for (auto& path : {middle, top, directory_})
    if (auto status = co_await syncPath(path); !status) co_return status;
  durableDirectories_[directory] = true;
  co_return Done{};
}

Task<Status> ObjectStore::syncPath(std::string path) {
  int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int result = -errno;
  if (fd >= 0) {
    result = co_await reactor_.operate([&](io_uring_sqe* sqe) { io_uring_prep_fsync(sqe, fd, 0); });
    close(fd);
  }
  if (result >= 0) co_return Done{};
  spdlog::error("{}: fsync of {}: {}", name_, path, strerror(-result));
  co_return Errno(-result);
}

void ObjectStore::tick() {
  auto now = std::chrono::steady_clock::now();
  if (dirtyCount_ < limits_.dirtyObjects / 2) urgent_ = false;
  while (cleaning_ < kCleaningMax && !dirty_.empty()) {
    Object& object = *dirty_.front();
    bool due = urgent_ || now - object.changed >= limits_.idle;
    if (!due) break;
    spawn(cleanInBackground(object));
  }
}

Task<> ObjectStore::cleanInBackground(Object& object) {
  ++cleaning_;
  object.cleaning = true;
  dirty_.erase(object.inDirty);
  object.dirtyQueued = false;
  {
    Pin pin(*this, object);
    Status status = co_await ensureLoaded(object);
    if (status) status = co_await syncRound(object);
    object.cleaning = false;
    if (object.dirty) noteChanged(object);  // it failed, or was changed again: later
  }
  --cleaning_;
  cleaned_.pulse();
  tick();
}

Task<> ObjectStore::cleanOne(ObjectId id, Permits& permits) {
  (void)co_await sync(id);  // what fails is logged there, and stays dirty
  permits.release();
}

Task<bool> ObjectStore::cleanAll() {
  while (cleaning_ > 0) co_await cleaned_;
  std::vector<ObjectId> ids;
  for (auto* object : dirty_) ids.push_back(object->id);
  Permits permits(reactor_, kCleaningMax);
  for (auto& id : ids) {
    co_await permits.acquire();
    spawn(cleanOne(id, permits));
  }
  for (uint32_t i = 0; i < kCleaningMax; ++i) co_await permits.acquire();
  co_return dirtyCount_ == 0;
}

Task<Status> ObjectStore::destroy(ObjectId id) {
  Pin object(*this, stateOf(id));
  auto hold = co_await object->locks.take(Mode::kChange, {});
  co_await object->loading.acquire();
  Status status = co_await destroyHeld(*object);
  object->loading.release();
  co_return status;
}

Task<Status> ObjectStore::destroyHeld(Object& object) {
  std::string path = pathOf(object.id);
  int result = co_await reactor_.operate(
      [&](io_uring_sqe* sqe) { io_uring_prep_unlinkat(sqe, AT_FDCWD, path.c_str(), 0); });
  if (result < 0 && result != -ENOENT) {
    spdlog::error("{}: cannot unlink object {}: {}", name_, objectIdHex(object.id),
                  strerror(-result));
    co_return Errno(-result);
  }
  closeFile(object);
  setClean(object);
  object.sums = BlockSums();
  object.presence = Object::Presence::kMissing;
  if (result == 0)
    if (auto status = co_await syncDirectory(directoryOf(object.id)); !status) co_return status;
  object.hasRecord = false;
  co_return co_await commit({.kind = IndexChange::Kind::kRemove,
                             .object = object.id,
                             .dropFirst = 0,
                             .dropEnd = ~uint64_t{0}});
}

}  // namespace trainfs::oss
