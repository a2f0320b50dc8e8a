// libFuzzer target: whatever bytes arrive on a data port, the frame checks answer with words or a
// frame whose parts all lie within their limits. Run: build/test/fuzz/frame_fuzz -max_len=5000
// CORPUS_DIR
#include <cstring>
#include <vector>

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

}  // namespace

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
