// How objects become dirty, clean and gone, durably.
//
// Dirty: before the first change to a clean object its record is marked so, synchronously; an
// object without a record is dirty anyway. Clean: the data is flushed, the directory entry too,
// unknown sums are made from what the file holds, and only then a record says so. A sync goes along
// with reads but excludes changes, so what it calls clean is what it flushed.
//
// Failed: the kernel says once that it could not write pages, and forgets them. After that no flush
// of the object proves anything, so neither changes nor syncs are answered well while this process
// runs, and the next one has another verifier.
#include <fcntl.h>
#include <unistd.h>

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

Task<Status> ObjectStore::beginChange(Object& object, uint32_t registration, uint64_t dropFirst,
                                      uint64_t dropEnd) {
  auto needed = [&] {
    bool drops = dropEnd > dropFirst && object.hasRecord && !object.sums.inDoubt();
    return !object.dirty || drops;
  };
  if (auto status = mayChange(object, registration); !status) co_return status;
  if (!needed()) {
    object.changedHere = true;
    co_return Done{};
  }
  co_await object.loading.acquire();
  Status status = Done{};
  if (needed()) {
    status = co_await commit({.kind = IndexChange::Kind::kMarkDirty,
                              .object = object.id,
                              .dropFirst = dropFirst,
                              .dropEnd = dropEnd});
    if (status && !object.dirty) setDirty(object);
    if (object.dirty) noteChanged(object);
  }
  object.loading.release();
  if (!status) co_return status;
  status = mayChange(object, registration);
  // The index has lost sums of bytes that stay as they are.
  if (!status && dropEnd > dropFirst) object.sums.doubtAll();
  // Not before: an object that stays clean would keep its descriptor for ever.
  if (status) object.changedHere = true;
  co_return status;
}

// Asked right before a change: a request may have waited long for its turn.
Status ObjectStore::mayChange(const Object& object, uint32_t registration) {
  if (object.failed || index_.givenUp()) {
    spdlog::error("{}: object {}: not changed, because {} lost writes", name_,
                  objectIdHex(object.id), object.failed ? "it" : "this OST");
    return Errno(EIO);
  }
  if (!lease_.holdsIn(registration)) return Errno(EAGAIN);
  return Done{};
}

void ObjectStore::setDirty(Object& object) {
  object.dirty = true;
  ++dirtyCount_;
}

// Null: into none.
void ObjectStore::putInto(std::list<Object*>* queue, Object& object) {
  if (object.queue) object.queue->erase(object.inQueue);
  object.queue = queue;
  if (queue) object.inQueue = queue->insert(queue->end(), &object);
}

void ObjectStore::noteChanged(Object& object) {
  object.changed = std::chrono::steady_clock::now();
  if (object.cleaning || object.failed || object.queue == &stuck_) return;
  putInto(&dirty_, object);
}

void ObjectStore::setClean(Object& object) {
  object.cleaningFailures = 0;
  object.changedHere = false;
  if (!object.dirty) return;
  putInto(nullptr, object);
  --(object.failed ? failedCount_ : dirtyCount_);
  object.dirty = object.failed = false;
}

void ObjectStore::setFailed(Object& object) {
  object.failed = true;
  --dirtyCount_;
  ++failedCount_;
  putInto(nullptr, object);
  index_.disownUnsynced();
  spdlog::critical(
      "{}: object {}: writes of it may be lost; it is neither changed nor synced any more "
      "until the next start",
      name_, objectIdHex(object.id));
  if (failedCount_ <= limits_.failedObjects || index_.givenUp()) return;
  spdlog::critical("{}: more than {} objects lost writes; nothing is changed any more", name_,
                   limits_.failedObjects);
  index_.giveUp();
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
  if (object.dirty && !object.failed) co_await sumAhead(object);
  auto hold = co_await object.locks.take(Mode::kSync, {});
  object.nextSync = nullptr;
  round->status = co_await makeClean(object);
  round->done.set();
  co_return round->status;
}

// Everything that was written is on stable storage, the name too.
Task<Status> ObjectStore::flush(Object& object) {
  int result;
  do {
    result = co_await reactor_.operate(
        [&](io_uring_sqe* sqe) { io_uring_prep_fsync(sqe, object.fd, IORING_FSYNC_DATASYNC); });
  } while (result == -EINTR);
  if (result < 0) {
    spdlog::error("{}: object {}: fdatasync: {}", name_, objectIdHex(object.id), strerror(-result));
    setFailed(object);
    co_return Errno(-result);
  }
  if (!object.entryUnsynced) co_return Done{};
  auto status = co_await syncDirectory(directoryOf(object.id));
  if (status) object.entryUnsynced = false;
  co_return status;
}

Task<Status> ObjectStore::makeClean(Object& object) {
  if (!object.dirty || object.missing()) co_return Done{};
  if (object.failed || index_.givenUp()) {
    spdlog::error("{}: object {}: not synced, because {} lost writes", name_,
                  objectIdHex(object.id), object.failed ? "it" : "this OST");
    co_return Errno(EIO);
  }
  if (auto status = co_await flush(object); !status) co_return status;
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
  std::string leaf = directoryPath(directory);
  if (auto status = co_await syncPath(leaf); !status) co_return status;
  if (durableDirectories_[directory]) co_return Done{};
  // It, or the one above, may have been made lately, by us or by another worker.
  std::string middle = leaf.substr(0, leaf.rfind('/')), top = directory_ + "/objects";
  for (auto& path : {middle, top, directory_})
    if (auto status = co_await syncPath(path); !status) co_return status;
  durableDirectories_[directory] = true;
  co_return Done{};
}

Task<Status> ObjectStore::syncPath(std::string path) {
  int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int result = -errno;
  if (fd >= 0) {
    do {
      result =
          co_await reactor_.operate([&](io_uring_sqe* sqe) { io_uring_prep_fsync(sqe, fd, 0); });
    } while (result == -EINTR);
    close(fd);
  }
  if (result >= 0) co_return Done{};
  // Whose names were lost cannot be told, nor asked again.
  if (fd >= 0) index_.giveUp(), index_.disownUnsynced();
  spdlog::critical("{}: fsync of {}: {}{}", name_, path, strerror(-result),
                   fd >= 0 ? "; nothing is changed any more until the next start" : "");
  co_return Errno(-result);
}

void ObjectStore::tick() {
  retryStuck();
  startCleaning();
}

void ObjectStore::retryStuck() {
  auto now = std::chrono::steady_clock::now();
  for (auto at = stuck_.begin(); at != stuck_.end();) {
    Object& object = **at++;
    if (object.retryAt <= now) putInto(&dirty_, object);
  }
}

void ObjectStore::startCleaning() {
  if (index_.givenUp()) return;  // nothing can be made clean any more
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
  putInto(nullptr, object);
  {
    Pin pin(*this, object);
    Status status = co_await ensureLoaded(object);
    if (status) status = co_await syncRound(object);
    object.cleaning = false;
    if (!status && object.dirty && !object.failed) {
      cleaningError_ = status;
      auto doublings = std::min(object.cleaningFailures++, kRetryDoublingsMax);
      object.retryAt = std::chrono::steady_clock::now() + std::chrono::seconds(1u << doublings);
      putInto(&stuck_, object);
    } else if (object.dirty) {
      noteChanged(object);  // again, while it was being cleaned
    }
  }
  --cleaning_;
  cleaned_.pulse();
  startCleaning();
}

Task<Status> ObjectStore::cleanLeftover(ObjectId id) {
  if (objects_.contains(id)) co_return Done{};
  auto existed = co_await sync(id);
  co_return existed ? Status(Done{}) : Status(existed.error());
}

Task<> ObjectStore::cleanOne(ObjectId id, Permits& permits) {
  (void)co_await sync(id);  // what fails is logged there, and stays dirty
  permits.release();
}

Task<bool> ObjectStore::cleanAll() {
  while (cleaning_ > 0) co_await cleaned_;
  if (index_.givenUp()) co_return false;
  std::vector<ObjectId> ids;
  for (auto* queue : {&dirty_, &stuck_})
    for (auto* object : *queue) ids.push_back(object->id);
  Permits permits(reactor_, kCleaningMax);
  for (auto& id : ids) {
    co_await permits.acquire();
    spawn(cleanOne(id, permits));
  }
  for (uint32_t i = 0; i < kCleaningMax; ++i) co_await permits.acquire();
  co_return dirtyCount_ == 0 && failedCount_ == 0;
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
  if (index_.givenUp()) co_return Errno(EIO);  // its name could come back
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
  // Also when it was gone already: a server that was killed may not have come to this.
  uint16_t directory = directoryOf(object.id);
  if (result == 0 || access(directoryPath(directory).c_str(), F_OK) == 0)
    if (auto status = co_await syncDirectory(directory); !status) co_return status;
  auto status = co_await commit({.kind = IndexChange::Kind::kRemove,
                                 .object = object.id,
                                 .dropFirst = 0,
                                 .dropEnd = ~uint64_t{0}});
  if (status) object.hasRecord = false;
  co_return status;
}

}  // namespace trainfs::oss
