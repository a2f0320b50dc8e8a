// What of the objects is in memory and open, and how it comes and goes.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "oss/object_store.h"
#include "trainfs/bulk.h"
#include "trainfs/logging.h"
#include "trainfs/object_id.h"

namespace trainfs::oss {

namespace {
constexpr size_t kEvictScanMax = 64;
constexpr unsigned kInodesPerDirectoryShift = 7;

// What is dirty keeps its descriptor, so there must be more of those.
ObjectStoreLimits usable(ObjectStoreLimits limits) {
  limits.dirtyObjects = std::min(limits.dirtyObjects, limits.descriptors * 3 / 4);
  return limits;
}

}  // namespace

ObjectStore::ObjectStore(Reactor& reactor, ObjectIndex& index, const Lease& lease,
                         std::string directory, std::string name, const ObjectStoreLimits& limits)
    : reactor_(reactor),
      index_(index),
      lease_(lease),
      reader_(index),
      directory_(std::move(directory)),
      name_(std::move(name)),
      limits_(usable(limits)),
      cleaned_(reactor),
      scratchPermits_(reactor, kScratchMax) {
  for (uint32_t i = 0; i < kScratchMax; ++i)
    scratch_.push_back(std::make_unique_for_overwrite<std::byte[]>(kPieceBlocks * kBlockBytes));
}

ObjectStore::~ObjectStore() {
  for (auto* object : openFiles_) close(object->fd);
}

// Files of neighbouring inodes, which are mostly made and synced together, share a directory.
uint16_t ObjectStore::directoryOf(ObjectId id) {
  uint64_t group = id.inode.value >> kInodesPerDirectoryShift;
  return static_cast<uint16_t>(blockSum(&group, sizeof group));
}

std::string ObjectStore::directoryPath(uint16_t directory) const {
  char fanOut[8];
  std::snprintf(fanOut, sizeof fanOut, "%02x/%02x", directory >> 8, directory & 0xff);
  return directory_ + "/objects/" + fanOut;
}

std::string ObjectStore::pathOf(ObjectId id) const {
  return directoryPath(directoryOf(id)) + "/" + objectIdHex(id);
}

int ObjectStore::makeDirectories(uint16_t directory) const {
  char parts[2][4];
  std::snprintf(parts[0], sizeof parts[0], "/%02x", directory >> 8);
  std::snprintf(parts[1], sizeof parts[1], "/%02x", directory & 0xff);
  std::string path = directory_ + "/objects";
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return errno;
  for (auto& part : parts) {
    path += part;
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return errno;
  }
  return 0;
}

ObjectStore::Object& ObjectStore::stateOf(ObjectId id) {
  auto& slot = objects_[id];
  if (!slot) {
    slot = std::make_unique<Object>(reactor_, id);
    slot->inStates = states_.insert(states_.end(), slot.get());
  } else {
    states_.splice(states_.end(), states_, slot->inStates);
  }
  if (slot->fd >= 0) openFiles_.splice(openFiles_.end(), openFiles_, slot->inOpenFiles);
  return *slot;
}

void ObjectStore::unpin(Object& object) {
  if (--object.pins > 0) return;
  chunksHeld_ += object.sums.chunks().size() - object.chunksCounted;
  object.chunksCounted = object.sums.chunks().size();
  if (object.missing())
    forget(object);
  else
    evict();
}

// Looks at a few of those that were used longest ago; what cannot go now waits behind the others,
// so that it does not hide them. An object with writes that were not flushed keeps its descriptor:
// without one, the kernel may forget that it could not write the object's pages.
void ObjectStore::evict() {
  size_t looks = kEvictScanMax;
  for (auto at = openFiles_.begin();
       openFiles_.size() > limits_.descriptors && at != openFiles_.end() && looks > 0; --looks) {
    Object& object = **at++;
    if (object.pins == 0 && !object.changedHere)
      closeFile(object);
    else
      openFiles_.splice(openFiles_.end(), openFiles_, object.inOpenFiles);
  }
  looks = kEvictScanMax;
  for (auto at = states_.begin();
       (objects_.size() > limits_.objects || chunksHeld_ > limits_.chunks) && at != states_.end() &&
       looks > 0;
       --looks) {
    Object& object = **at++;
    if (object.pins == 0 && !object.dirty)
      forget(object);
    else
      states_.splice(states_.end(), states_, object.inStates);
  }
}

void ObjectStore::forget(Object& object) {
  closeFile(object);
  chunksHeld_ -= object.chunksCounted;
  states_.erase(object.inStates);
  objects_.erase(ObjectId(object.id));
}

void ObjectStore::setFile(Object& object, int fd) {
  object.fd = fd;
  object.inOpenFiles = openFiles_.insert(openFiles_.end(), &object);
}

void ObjectStore::closeFile(Object& object) {
  if (object.fd < 0) return;
  close(object.fd);
  object.fd = -1;
  openFiles_.erase(object.inOpenFiles);
}

Task<Status> ObjectStore::ensureLoaded(Object& object) {
  if (object.fd >= 0 || object.presence == Object::Presence::kMissing) co_return Done{};
  co_await object.loading.acquire();
  Status status = Done{};
  if (object.fd < 0 && object.presence != Object::Presence::kMissing)
    status = co_await load(object);
  object.loading.release();
  co_return status;
}

Task<Status> ObjectStore::load(Object& object) {
  std::string path = pathOf(object.id);
  int fd = co_await reactor_.operate([&](io_uring_sqe* sqe) {
    io_uring_prep_openat(sqe, AT_FDCWD, path.c_str(), O_RDWR | O_CLOEXEC, 0);
  });
  if (fd == -ENOENT) {
    auto found = reader_.find(object.id);
    if (!found && found.error() == Errno(ENOENT) && object.presence == Object::Presence::kUnknown) {
      object.presence = Object::Presence::kMissing;
      co_return Done{};
    }
    spdlog::error("{}: object {} is known here, but its file is gone", name_,
                  objectIdHex(object.id));
    co_return Errno(EIO);
  }
  struct stat attributes;
  if (fd < 0 || fstat(fd, &attributes) != 0) {
    int error = fd < 0 ? -fd : errno;
    if (fd >= 0) close(fd);
    spdlog::error("{}: cannot open object {}: {}", name_, objectIdHex(object.id), strerror(error));
    co_return Errno(error == EMFILE || error == ENFILE || error == ENOMEM ? error : EIO);
  }
  if (object.presence == Object::Presence::kUnknown) {
    if (auto status = loadRecord(object, attributes.st_size); !status) {
      close(fd);
      co_return status;
    }
  }
  setFile(object, fd);
  co_return Done{};
}

Status ObjectStore::loadRecord(Object& object, uint64_t fileBytes) {
  auto found = reader_.find(object.id);
  if (!found && found.error() != Errno(ENOENT)) return found.error();
  object.hasRecord = found.ok();
  if (found) object.version = found->record.version;
  if (!found || found->record.dirty) {
    // It was being changed when its last server ended: sums and size are what the file says.
    object.sizeBytes = fileBytes;
    // With a record, too: it may be that of an earlier object, whose name went and came again.
    object.entryUnsynced = true;
    object.sums.doubtAll();
    object.presence = Object::Presence::kHere;
    setDirty(object);
    noteChanged(object);
    if (dirtyCount_ >= limits_.dirtyObjects) urgent_ = true;
    return Done{};
  }
  if (fileBytes != found->record.sizeBytes)
    spdlog::error("{}: object {} should have {} bytes, its file has {}", name_,
                  objectIdHex(object.id), found->record.sizeBytes, fileBytes);
  object.sizeBytes = found->record.sizeBytes;
  object.sums.load(0, std::move(found->firstSums));
  object.presence = Object::Presence::kHere;
  return Done{};
}

// The caller is alone with the object.
Task<Status> ObjectStore::create(Object& object) {
  std::string path = pathOf(object.id);
  auto open = [&](io_uring_sqe* sqe) {
    io_uring_prep_openat(sqe, AT_FDCWD, path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  };
  int fd = co_await reactor_.operate(open);
  if (fd == -ENOENT) {
    if (int error = makeDirectories(directoryOf(object.id)); error != 0) co_return Errno(error);
    fd = co_await reactor_.operate(open);
  }
  if (fd < 0) {
    spdlog::error("{}: cannot make object {}: {}", name_, objectIdHex(object.id), strerror(-fd));
    co_return Errno(-fd);
  }
  object.presence = Object::Presence::kHere;
  object.sizeBytes = 0;
  object.entryUnsynced = object.changedHere = true;
  setFile(object, fd);
  if (object.hasRecord) {
    // An earlier object of that name was destroyed, but its record could not be removed: the
    // change that makes this one must mark it first, and none of the sums in the index counts.
    object.sums.doubtAll();
    co_return Done{};
  }
  setDirty(object);
  noteChanged(object);
  co_return Done{};
}

Status ObjectStore::ensureChunks(Object& object, uint64_t firstBlock, uint64_t endBlock) {
  for (uint64_t chunk = chunkOfBlock(firstBlock); chunk * kChunkBlocks < endBlock; ++chunk) {
    if (object.sums.has(chunk)) continue;
    if (object.sums.inDoubt()) {
      object.sums.loadUnknown(chunk, object.sizeBytes);
    } else if (!object.hasRecord) {
      object.sums.load(chunk, {});
    } else if (chunk == 0) {
      auto found = reader_.find(object.id);
      if (!found) return found.error() == Errno(ENOENT) ? Errno(EIO) : found.error();
      object.sums.load(0, std::move(found->firstSums));
    } else {
      auto sums = reader_.sums(object.id, chunk);
      if (!sums) return sums.error();
      object.sums.load(chunk, std::move(*sums));
    }
  }
  return Done{};
}

}  // namespace trainfs::oss
