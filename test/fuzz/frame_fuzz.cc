// Whatever bytes arrive on a data port, the frame checks answer with words or a frame whose parts
// all lie within their limits.
#include "frames.h"
#include "target.h"

using namespace trainfs;
using fuzz::require;

std::vector<std::string> fuzz::seeds() {
  auto frames = legalFrames(false), replies = legalFrames(true);
  frames.insert(frames.end(), replies.begin(), replies.end());
  return frames;
}

namespace {

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

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t sizeMax);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t sizeMax,
                                          unsigned seed) {
  if (seed % 2 == 0 && size >= sizeof(BulkHeader) && sizeMax >= kBulkHeadBytesMax) {
    size_t whole = fuzz::mendHead({data, size});
    if (whole > size) std::memset(data + size, 0, whole - size);
    size = whole;
  }
  return LLVMFuzzerMutate(data, size, sizeMax);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  BulkHeader header;
  if (size < sizeof header) return 0;
  std::memcpy(&header, data, sizeof header);
  auto input = std::as_bytes(std::span(data, size)).subspan(sizeof header);
  if (checkHeader(header).empty() && tailBytes(header) <= input.size()) {
    // Once with the sum as it came, once with one that fits, to reach what the sum guards.
    auto tail = input.first(tailBytes(header));
    if (checkHead(header, tail).empty()) requireSafe(header, tail);
    sealHead(header, tail);
    if (checkHead(header, tail).empty()) requireSafe(header, tail);
  } else {
    require(!checkHead(header, input).empty());
  }
  return 0;
}
