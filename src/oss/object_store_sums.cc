// How sums that are not known are made from what an object's file holds, and how what it holds is
// compared with those that are known.
#include <unistd.h>

#include <cstring>

#include "oss/object_store.h"
#include "trainfs/bulk.h"
#include "trainfs/logging.h"
#include "trainfs/object_id.h"

namespace trainfs::oss {

// Brings in the chunks that may hold something other than zeros.
Status ObjectStore::findDoubtful(Object& object) {
  constexpr uint64_t kChunkBytes = kChunkBlocks * kBlockBytes;
  for (uint64_t at = 0; at < object.sizeBytes;) {
    off_t data = lseek(object.fd, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    if (data < 0) {
      spdlog::error("{}: object {}: looking for data from {} on: {}", name_, objectIdHex(object.id),
                    at, strerror(errno));
      return Errno(EIO);
    }
    uint64_t chunk = data / kChunkBytes;
    if (chunk * kChunkBytes < object.sizeBytes && !object.sums.has(chunk))
      object.sums.loadUnknown(chunk, object.sizeBytes);
    at = (chunk + 1) * kChunkBytes;
  }
  if (object.sizeBytes % kBlockBytes == 0) return Done{};
  uint64_t last = object.sizeBytes / kBlockBytes;  // a short block of zeros has a sum of its own
  return ensureChunks(object, last, last + 1);
}

// Hands what the file has there to `use`, if it has that much.
template <typename Use>
Task<Status> ObjectStore::readPiece(Object& object, uint64_t offsetBytes, size_t bytes, Use use) {
  co_await scratchPermits_.acquire();
  auto memory = std::move(scratch_.back());
  scratch_.pop_back();
  auto found = co_await readFully(object.fd, offsetBytes, {memory.get(), bytes});
  bool whole = found && *found == bytes;
  if (whole) use(memory.get());
  scratch_.push_back(std::move(memory));
  scratchPermits_.release();
  if (whole) co_return Done{};
  spdlog::error("{}: object {}: summing {} bytes at {}: {}", name_, objectIdHex(object.id), bytes,
                offsetBytes, found ? "file is too short" : strerror(found.error().code()));
  co_return Errno(EIO);
}

// Sums the unknown blocks that lie together from `block` on, as many as one piece has. The caller
// keeps changes off them.
Task<Status> ObjectStore::sumPiece(Object& object, uint64_t block) {
  uint64_t count = 1;
  while (count < kPieceBlocks && object.sums.nextUnknown(block + count) == block + count) ++count;
  uint64_t begin = block * kBlockBytes;
  size_t want = std::min(count * kBlockBytes, object.sizeBytes - begin);
  co_return co_await readPiece(object, begin, want, [&](const std::byte* data) {
    for (uint64_t i = 0; i < count; ++i) {
      // Somebody else may have summed it meanwhile, and let go of it.
      if (object.sums.nextUnknown(block + i) != block + i) continue;
      size_t at = i * kBlockBytes;
      object.sums.set(block + i, blockSum(data + at, std::min<size_t>(kBlockBytes, want - at)));
    }
  });
}

// Before a sync excludes changes, so that it does not do so for as long as it takes to read a large
// object. Goes over the object once: what changes behind it, and what fails, is the sync's.
Task<> ObjectStore::sumAhead(Object& object) {
  if (object.sums.inDoubt() && !findDoubtful(object)) co_return;
  for (auto block = object.sums.nextUnknown(0); block;
       block = object.sums.nextUnknown(*block + 1)) {
    auto hold =
        co_await object.locks.take(RangeLocks::Mode::kRead, {*block, *block + kPieceBlocks});
    if (object.missing()) co_return;  // destroyed meanwhile
    if (object.sums.nextUnknown(*block) != *block) continue;
    if (!co_await sumPiece(object, *block)) co_return;
  }
}

// Goes round: a read beside may bring in a chunk of an object in doubt, with unknown sums, behind
// `from`.
static std::optional<uint64_t> nextUnknownAround(const BlockSums& sums, uint64_t from) {
  auto next = sums.nextUnknown(from);
  return next ? next : sums.nextUnknown(0);
}

// The caller excludes changes of the object.
Task<Status> ObjectStore::sumUnknown(Object& object) {
  if (object.sums.inDoubt())
    if (auto status = findDoubtful(object); !status) co_return status;
  for (auto block = object.sums.nextUnknown(0); block;
       block = nextUnknownAround(object.sums, *block + 1))
    if (auto status = co_await sumPiece(object, *block); !status) co_return status;
  co_return Done{};
}

Status ObjectStore::compare(const Object& object, uint64_t block, uint64_t found,
                            uint64_t known) const {
  if (found == known) return Done{};
  spdlog::error("{}: object {}, block {}: damaged at rest: sum {:016x}, should be {:016x}", name_,
                objectIdHex(object.id), block, found, known);
  return Errno(EIO);
}

// What is not stored yet was written a moment ago, by this process: there is nothing to compare
// with a disk. So a block is read once per clean state of its object, however small its changes
// are.
Task<Status> ObjectStore::verifyBlock(Object& object, uint64_t block) {
  if (!object.hasRecord) co_return Done{};
  if (auto status = ensureChunks(object, block, block + 1); !status) co_return status;
  if (object.sums.stateOf(block) != BlockSums::State::kStored) co_return Done{};
  uint64_t known = *object.sums.get(block), begin = block * kBlockBytes;
  size_t bytes = std::min(kBlockBytes, object.sizeBytes - begin);
  uint64_t found = 0;
  auto sum = [&](const std::byte* data) { found = blockSum(data, bytes); };
  if (auto status = co_await readPiece(object, begin, bytes, sum); !status) co_return status;
  co_return compare(object, block, found, known);
}

// A block that keeps some of its bytes will be summed from what its file holds then. If that was
// damaged at rest, it would be right ever after.
Task<Status> ObjectStore::verifyEdges(Object& object, uint64_t offsetBytes, uint64_t endBytes) {
  uint64_t first = offsetBytes / kBlockBytes, last = endBytes / kBlockBytes;
  bool keepsBefore = offsetBytes % kBlockBytes != 0;
  bool keepsBehind = endBytes % kBlockBytes != 0 && endBytes < object.sizeBytes;
  if (keepsBefore)
    if (auto status = co_await verifyBlock(object, first); !status) co_return status;
  if (keepsBehind && !(keepsBefore && first == last)) co_return co_await verifyBlock(object, last);
  co_return Done{};
}

}  // namespace trainfs::oss
