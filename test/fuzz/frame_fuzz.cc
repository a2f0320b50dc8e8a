// libFuzzer target: whatever bytes arrive on a data port, the frame checks answer with words or a
// frame whose parts all lie within their limits. Run: build/test/fuzz/frame_fuzz -max_len=5000
// CORPUS_DIR
#include <algorithm>
#include <cstring>

#include "trainfs/bulk.h"
#include "trainfs/object_id.h"

namespace {

using namespace trainfs;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

void requireSafe(const BulkHeader& header, std::span<const std::byte> tail) {
  require(header.extentCount <= kBulkExtentsMax && header.sumCount <= kBulkSumsMax);
  require(header.payloadBytes <= kBulkPayloadBytesMax);
  require(sizeof header + tail.size() <= kBulkHeadBytesMax);
  bool stat = header.op == BulkOp::kStat;
  uint64_t bytes = 0, pieces = 0;
  for (uint32_t i = 0; i < header.extentCount; ++i) {
    BulkExtent extent;
    std::memcpy(&extent, tail.data() + i * sizeof extent, sizeof extent);
    require(decodeObjectId(extent.object).inode != kNoInode);
    require(workerOf(decodeObjectId(extent.object), 7) < 7);
    require(extent.offsetBytes <= kFileBytesMax);
    require(stat || extent.lengthBytes <= kFileBytesMax - extent.offsetBytes);
    bytes += extent.lengthBytes;
    pieces += blockPieces(extent.offsetBytes, extent.lengthBytes);
  }
  require(header.payloadBytes == 0 || header.payloadBytes == bytes);
  require(header.sumCount == 0 || header.sumCount == pieces);
}

// Brings a head near to a legal one, so that mutations start from frames that get far.
size_t mend(uint8_t* data, size_t size, size_t sizeMax) {
  BulkHeader header;
  if (size < sizeof header || sizeMax < kBulkHeadBytesMax) return size;
  std::memcpy(&header, data, sizeof header);
  header.magic = kBulkMagic;
  header.version = kBulkVersion;
  header.op = static_cast<BulkOp>(1 + static_cast<uint8_t>(header.op) % 7);
  header.status = BulkStatus::kOk;
  header.flags &= kBulkReply;
  header.errorCode = 0;
  header.reserved = 0;
  size_t extents = std::min<size_t>(header.extentCount % (kBulkExtentsMax + 1),
                                    (size - sizeof header) / sizeof(BulkExtent));
  uint32_t bytes = 0, pieces = 0;
  for (size_t i = 0; i < extents; ++i) {
    BulkExtent extent;
    std::memcpy(&extent, data + sizeof header + i * sizeof extent, sizeof extent);
    extent.object[0] |= 1;
    extent.offsetBytes &= kFileBytesMax >> 1;
    extent.lengthBytes %= kBulkPayloadBytesMax / kBulkExtentsMax;
    extent.flags &= kExtentMustExist;
    extent.reserved = 0;
    std::memcpy(data + sizeof header + i * sizeof extent, &extent, sizeof extent);
    bytes += extent.lengthBytes;
    pieces += blockPieces(extent.offsetBytes, extent.lengthBytes);
  }
  bool payload = header.op == (header.flags & kBulkReply ? BulkOp::kRead : BulkOp::kWrite);
  header.extentCount = static_cast<uint16_t>(header.op == BulkOp::kHello ? 0 : extents);
  header.payloadBytes = payload ? bytes : 0;
  header.sumCount = static_cast<uint16_t>(payload ? pieces : 0);
  std::memcpy(data, &header, sizeof header);
  size_t whole = sizeof header + tailBytes(header);
  if (whole > size) std::memset(data + size, 0, whole - size);
  return whole;
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t sizeMax);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t sizeMax,
                                          unsigned seed) {
  if (seed % 2 == 0) size = mend(data, size, sizeMax);
  return LLVMFuzzerMutate(data, size, sizeMax);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  BulkHeader header;
  if (size < sizeof header) return 0;
  std::memcpy(&header, data, sizeof header);
  std::span input(reinterpret_cast<const std::byte*>(data) + sizeof header, size - sizeof header);
  // The fuzzer cannot invert XXH3: it must reach what the sum guards, so the sum is made to fit.
  // What a wrong one does is seen with the sum as it came.
  if (checkHeader(header).empty() && tailBytes(header) <= input.size()) {
    auto tail = input.first(tailBytes(header));
    if (checkHead(header, tail).empty()) requireSafe(header, tail);
    sealHead(header, tail);
    if (checkHead(header, tail).empty()) requireSafe(header, tail);
  } else {
    require(!checkHead(header, input).empty());
  }
  return 0;
}
