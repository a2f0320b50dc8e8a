// Requests: read, write, punch, truncate, stat. What happens to an object's sums is in
// block_sums.cc.
#include "oss/object_store.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "trainfs/bulk.h"
#include "trainfs/logging.h"
#include "trainfs/object_id.h"

namespace trainfs::oss {

namespace {

using Mode = RangeLocks::Mode;

uint64_t roundDown(uint64_t bytes) {
  return bytes / kBlockBytes * kBlockBytes;
}

BlockRange blocksIn(FileRange range) {
  return {range.offsetBytes / kBlockBytes, blocksOf(range.endBytes())};
}

uint64_t lastBlock(uint64_t sizeBytes) {
  return sizeBytes == 0 ? 0 : (sizeBytes - 1) / kBlockBytes;
}

}  // namespace

size_t ObjectStore::roomFor(FileRange range) {
  return blocksOf(range.endBytes()) * kBlockBytes - roundDown(range.offsetBytes);
}

Task<Result<size_t>> ObjectStore::readFully(int fd, uint64_t offsetBytes,
                                            std::span<std::byte> room) {
  size_t done = 0;
  while (done < room.size()) {
    int result = co_await reactor_.operate([&](io_uring_sqe* sqe) {
      io_uring_prep_read(sqe, fd, room.data() + done, room.size() - done, offsetBytes + done);
    });
    if (result == -EINTR || result == -EAGAIN) continue;
    if (result < 0) co_return Errno(-result);
    if (result == 0) break;
    done += result;
  }
  co_return done;
}

Task<Status> ObjectStore::writeFully(int fd, uint64_t offsetBytes,
                                     std::span<const std::byte> data) {
  while (!data.empty()) {
    int result = co_await reactor_.operate([&](io_uring_sqe* sqe) {
      io_uring_prep_write(sqe, fd, data.data(), data.size(), offsetBytes);
    });
    if (result == -EINTR || result == -EAGAIN) continue;
    if (result <= 0) co_return Errno(result == 0 ? EIO : -result);
    data = data.subspan(result);
    offsetBytes += result;
  }
  co_return Done{};
}

Task<Result<ObjectStore::Slice>> ObjectStore::read(ObjectId id, FileRange range,
                                                   std::span<std::byte> room, bool verify) {
  Pin object(*this, stateOf(id));
  if (auto status = co_await ensureLoaded(*object); !status) co_return status.error();
  if (object->missing()) co_return Slice{.missing = true};
  auto hold = co_await object->locks.take(Mode::kRead, blocksIn(range));
  if (object->missing()) co_return Slice{.missing = true};  // destroyed meanwhile
  uint64_t end = std::min(range.endBytes(), object->sizeBytes);
  if (range.offsetBytes >= end) co_return Slice{};
  FileRange wanted{range.offsetBytes, end - range.offsetBytes};
  BlockRange blocks = blocksIn(wanted);
  if (auto status = ensureChunks(*object, blocks.first, blocks.end); !status)
    co_return status.error();

  // A block that is wanted in part can be verified only as a whole.
  uint64_t from = wanted.offsetBytes;
  if (object->sums.get(blocks.first)) from = roundDown(from);
  uint64_t to = end;
  if (object->sums.get(blocks.end - 1)) to = std::min(blocks.end * kBlockBytes, object->sizeBytes);
  auto bytes = co_await readFully(object->fd, from, room.first(to - from));
  if (!bytes || *bytes < to - from) {
    spdlog::error("{}: object {}: reading {} bytes at {}: {}", name_, objectIdHex(id), to - from,
                  from, bytes ? "file is too short" : strerror(bytes.error().code()));
    co_return Errno(EIO);
  }
  // A sync may have let go of them meanwhile.
  if (auto status = ensureChunks(*object, blocks.first, blocks.end); !status)
    co_return status.error();
  co_return sumSlice(*object, wanted, {from, to - from}, room.first(to - from), verify);
}

// Sums at rest go out as they are and the client verifies them; what has none, or only covers more
// than is wanted, is summed here.
Result<ObjectStore::Slice> ObjectStore::sumSlice(Object& object, FileRange wanted, FileRange read,
                                                 std::span<const std::byte> data, bool verify) {
  Slice slice;
  slice.data = data.subspan(wanted.offsetBytes - read.offsetBytes, wanted.lengthBytes);
  slice.sums.reserve(blockPieces(wanted.offsetBytes, wanted.lengthBytes));
  for (uint64_t at = wanted.offsetBytes; at < wanted.endBytes();) {
    uint64_t block = at / kBlockBytes, begin = block * kBlockBytes;
    uint64_t blockEnd = std::min(begin + kBlockBytes, object.sizeBytes);
    uint64_t pieceEnd = std::min(blockEnd, wanted.endBytes());
    auto sumOf = [&](uint64_t from, uint64_t to) {
      return blockSum(data.data() + (from - read.offsetBytes), to - from);
    };
    auto atRest = object.sums.get(block);
    // A sync beside this read may have found a sum that was unknown when the read was planned.
    bool whole = begin >= read.offsetBytes && blockEnd <= read.endBytes();
    bool asItIs = atRest && at == begin && pieceEnd == blockEnd;
    if (atRest && whole && (!asItIs || verify))
      if (auto same = compare(object, block, sumOf(begin, blockEnd), *atRest); !same)
        return same.error();
    slice.sums.push_back(asItIs ? *atRest : sumOf(at, pieceEnd));
    at = pieceEnd;
  }
  return slice;
}

// While too much is dirty, changes wait for the cleaner; not for what it cannot clean.
Task<Status> ObjectStore::waitForRoom() {
  while (dirtyCount_ >= limits_.dirtyObjects) {
    urgent_ = true;
    startCleaning();
    if (cleaning_ == 0) co_return cleaningError_;
    co_await cleaned_;
  }
  co_return Done{};
}

Task<Status> ObjectStore::write(ObjectId id, uint64_t offsetBytes, std::span<const std::byte> data,
                                const uint64_t* pieceSums, uint32_t registration) {
  FileRange range{offsetBytes, data.size()};
  if (auto status = co_await waitForRoom(); !status) co_return status;
  Pin object(*this, stateOf(id));
  while (true) {
    if (auto status = co_await ensureLoaded(*object); !status) co_return status;
    // A write past the end changes the size, so it is alone from the old end on.
    bool grows = object->missing() || range.endBytes() > object->sizeBytes;
    BlockRange blocks = blocksIn(range);
    if (grows) blocks = {std::min(blocks.first, lastBlock(object->sizeBytes))};
    auto hold = co_await object->locks.take(Mode::kChange, blocks);
    bool growsNow = object->missing() || range.endBytes() > object->sizeBytes;
    if (growsNow && !grows) continue;  // somebody before us cut it off
    co_return co_await writeHeld(*object, range, data, pieceSums, registration);
  }
}

Task<Status> ObjectStore::writeHeld(Object& object, FileRange range,
                                    std::span<const std::byte> data, const uint64_t* pieceSums,
                                    uint32_t registration) {
  if (object.missing()) {
    if (auto status = mayChange(object, registration); !status) co_return status;
    if (auto status = co_await create(object); !status) co_return status;
  }
  uint64_t changesFrom = std::min(range.offsetBytes, object.sizeBytes);
  if (auto status = co_await verifyEdges(object, changesFrom, range.endBytes()); !status)
    co_return status;
  if (auto status = co_await beginChange(object, registration); !status) co_return status;
  auto ensureSums = [&, blocks = blocksIn(range)]() -> Status {
    uint64_t last = lastBlock(object.sizeBytes);
    if (auto status = ensureChunks(object, last, last + 1); !status) return status;
    return ensureChunks(object, blocks.first, blocks.end);
  };
  if (auto status = ensureSums(); !status) co_return status;

  Status status = co_await writeFully(object.fd, range.offsetBytes, data);
  // Only now: writes to other blocks, and one that grows the object, may have run meanwhile.
  Status sums = ensureSums();
  uint64_t oldSize = object.sizeBytes, newSize = std::max(oldSize, range.endBytes());
  if (!status) {
    struct stat attributes;
    if (newSize > oldSize)
      newSize = fstat(object.fd, &attributes) == 0 ? attributes.st_size : oldSize;
    spdlog::error("{}: object {}: writing {} bytes at {}: {}", name_, objectIdHex(object.id),
                  range.lengthBytes, range.offsetBytes, strerror(status.error().code()));
  }
  if (!sums)
    object.sums.doubtAll();  // the bytes are there, and what is known may be of those before
  else if (status)
    object.sums.wrote(range, pieceSums, oldSize, newSize);
  else
    object.sums.lost(range, oldSize, newSize);
  object.sizeBytes = newSize;
  noteChanged(object);
  if (object.sums.chunks().size() > kChunksKeptMax && object.queue == &dirty_ &&
      cleaning_ < kCleaningMax)
    spawn(cleanInBackground(object));
  co_return status ? sums : status;
}

Task<ObjectStore::Existed> ObjectStore::punch(ObjectId id, FileRange range, uint32_t registration) {
  Pin object(*this, stateOf(id));
  if (auto status = co_await ensureLoaded(*object); !status) co_return status.error();
  auto hold = co_await object->locks.take(Mode::kChange, blocksIn(range));
  if (object->missing()) co_return false;
  uint64_t end = std::min(range.endBytes(), object->sizeBytes);
  if (range.offsetBytes >= end) co_return true;
  auto status =
      co_await punchHeld(*object, {range.offsetBytes, end - range.offsetBytes}, registration);
  if (!status) co_return status.error();
  co_return true;
}

Task<Status> ObjectStore::punchHeld(Object& object, FileRange range, uint32_t registration) {
  constexpr uint64_t kChunkBytes = kChunkBlocks * kBlockBytes;
  if (auto status = co_await verifyEdges(object, range.offsetBytes, range.endBytes()); !status)
    co_return status;
  uint64_t dropFirst = (range.offsetBytes + kChunkBytes - 1) / kChunkBytes;
  uint64_t dropEnd = std::max(dropFirst, range.endBytes() / kChunkBytes);
  if (auto status = co_await beginChange(object, registration, dropFirst, dropEnd); !status)
    co_return status;
  auto ensureSums = [&, blocks = blocksIn(range)]() -> Status {
    for (uint64_t edge : {blocks.first, blocks.end - 1})
      if (auto status = ensureChunks(object, edge, edge + 1); !status) return status;
    return Done{};
  };
  if (auto status = ensureSums(); !status) {
    object.sums.doubtAll();  // those of the chunks in between are gone already
    co_return status;
  }
  int result = co_await reactor_.operate([&](io_uring_sqe* sqe) {
    io_uring_prep_fallocate(sqe, object.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                            range.offsetBytes, range.lengthBytes);
  });
  noteChanged(object);
  if (result < 0) {
    object.sums.doubtAll();
    spdlog::error("{}: object {}: punching {} bytes at {}: {}", name_, objectIdHex(object.id),
                  range.lengthBytes, range.offsetBytes, strerror(-result));
    co_return Errno(-result);
  }
  Status sums = ensureSums();
  if (sums)
    object.sums.punched(range, object.sizeBytes);
  else
    object.sums.doubtAll();
  co_return sums;
}

Task<ObjectStore::Existed> ObjectStore::truncate(ObjectId id, uint64_t sizeBytes,
                                                 uint32_t registration) {
  Pin object(*this, stateOf(id));
  if (auto status = co_await ensureLoaded(*object); !status) co_return status.error();
  auto hold = co_await object->locks.take(Mode::kChange, {});
  if (object->missing()) co_return false;
  if (object->sizeBytes == sizeBytes) co_return true;
  if (auto status = co_await truncateHeld(*object, sizeBytes, registration); !status)
    co_return status.error();
  co_return true;
}

Task<Status> ObjectStore::truncateHeld(Object& object, uint64_t sizeBytes, uint32_t registration) {
  bool shrinks = sizeBytes < object.sizeBytes;
  uint64_t dropEnd = shrinks ? ~uint64_t{0} : 0;
  auto [from, to] = std::minmax({sizeBytes, object.sizeBytes});
  if (auto intact = co_await verifyEdges(object, from, to); !intact) co_return intact;
  auto status =
      co_await beginChange(object, registration, shrinks ? chunksOf(sizeBytes) : 0, dropEnd);
  if (!status) co_return status;
  for (uint64_t edge : {lastBlock(std::min(sizeBytes, object.sizeBytes)), lastBlock(sizeBytes)}) {
    if (status = ensureChunks(object, edge, edge + 1); status) continue;
    if (shrinks) object.sums.doubtAll();  // those beyond are gone already
    co_return status;
  }
  noteChanged(object);
  if (ftruncate(object.fd, sizeBytes) != 0) {
    int error = errno;
    if (shrinks) object.sums.doubtAll();
    spdlog::error("{}: object {}: setting its size from {} to {}: {}", name_,
                  objectIdHex(object.id), object.sizeBytes, sizeBytes, strerror(error));
    co_return Errno(error);
  }
  object.sums.resized(object.sizeBytes, sizeBytes);
  object.sizeBytes = sizeBytes;
  co_return Done{};
}

Task<Result<ObjectStore::Figures>> ObjectStore::stat(ObjectId id) {
  Pin object(*this, stateOf(id));
  if (auto status = co_await ensureLoaded(*object); !status) co_return status.error();
  if (object->missing()) co_return Figures{};
  struct stat attributes;
  if (fstat(object->fd, &attributes) != 0) {
    spdlog::error("{}: object {}: fstat: {}", name_, objectIdHex(id), strerror(errno));
    co_return Errno(EIO);
  }
  co_return Figures{
      .exists = true,
      .sizeBytes = object->sizeBytes,
      .usedBytes = static_cast<uint64_t>(attributes.st_blocks) * 512,
      .mtime = {attributes.st_mtim.tv_sec, static_cast<uint32_t>(attributes.st_mtim.tv_nsec)}};
}

}  // namespace trainfs::oss
