#include "trainfs/bulk.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "trainfs/object_id.h"

namespace trainfs {

namespace {

// Which frames carry payload (and its sums): what a writer sends and what a reader gets.
bool carriesPayload(const BulkHeader& header) {
  bool reply = header.flags & kBulkReply;
  if (header.status != BulkStatus::kOk) return false;
  return header.op == (reply ? BulkOp::kRead : BulkOp::kWrite);
}

const char* opName(BulkOp op) {
  switch (op) {
    case BulkOp::kHello:
      return "hello";
    case BulkOp::kRead:
      return "read";
    case BulkOp::kWrite:
      return "write";
    case BulkOp::kPunch:
      return "punch";
    case BulkOp::kSync:
      return "sync";
    case BulkOp::kStat:
      return "stat";
  }
  return nullptr;
}

std::string frameName(const BulkHeader& header) {
  return std::string(opName(header.op)) + (header.flags & kBulkReply ? " reply" : " request");
}

std::string number(uint64_t value) {
  return std::to_string(value);
}

uint64_t headSum(const BulkHeader& header, std::span<const std::byte> tail) {
  // One copy of at most 4.6 KiB, because XXH3 in one go beats its streaming form on such short
  // input.
  std::byte head[kBulkHeadBytesMax];
  BulkHeader unsealed = header;
  unsealed.sum = 0;
  std::memcpy(head, &unsealed, sizeof unsealed);
  if (!tail.empty()) std::memcpy(head + sizeof unsealed, tail.data(), tail.size());
  return XXH3_64bits(head, sizeof unsealed + tail.size());
}

// The calls `visit(offset within data, bytes)` cover the data piece by piece.
template <typename Visit>
bool forEachPiece(uint64_t offsetBytes, size_t lengthBytes, Visit visit) {
  for (size_t done = 0; done < lengthBytes;) {
    size_t piece =
        std::min<uint64_t>(lengthBytes - done, kBlockBytes - (offsetBytes + done) % kBlockBytes);
    if (!visit(done, piece)) return false;
    done += piece;
  }
  return true;
}

bool isChangeOrSync(BulkOp op) {
  return op == BulkOp::kWrite || op == BulkOp::kPunch || op == BulkOp::kSync;
}

std::string checkRequestExtent(BulkOp op, const BulkExtent& extent) {
  uint32_t known = op == BulkOp::kRead ? kExtentMustExist | kExtentVerify : kExtentMustExist;
  if (extent.flags & ~known) return "unknown flags " + number(extent.flags);
  switch (op) {
    case BulkOp::kRead:
    case BulkOp::kWrite:
    case BulkOp::kPunch:
      return extent.lengthBytes == 0 ? "length 0" : "";
    default:
      return extent.lengthBytes != 0 || extent.offsetBytes != 0
                 ? "offset or length given, must be 0"
                 : "";
  }
}

std::string checkExtent(const BulkHeader& header, const BulkExtent& extent) {
  bool reply = header.flags & kBulkReply;
  if (extent.verifier != 0 && !(reply && isChangeOrSync(header.op)))
    return "a verifier where none belongs";
  if (decodeObjectId(extent.object).inode == kNoInode) return "inode 0";
  if (extent.offsetBytes > kFileBytesMax)
    return "offset " + number(extent.offsetBytes) + " too large";
  // The length of a stat reply counts blocks, not bytes from the offset on.
  bool isRange = !(reply && header.op == BulkOp::kStat);
  if (isRange && extent.lengthBytes > kFileBytesMax - extent.offsetBytes)
    return "offset " + number(extent.offsetBytes) + " + length " + number(extent.lengthBytes) +
           " overflows";
  if (!reply) return checkRequestExtent(header.op, extent);
  if (extent.flags & ~(kExtentMustExist | kExtentMissing))
    return "unknown flags " + number(extent.flags);
  return "";
}

// What all extents of a frame come to.
struct Totals {
  uint64_t bytes = 0;  // at most kBulkExtentsMax * 2^32
  uint64_t pieces = 0;
};

std::string checkTotals(const BulkHeader& header, const Totals& totals) {
  if (header.op == BulkOp::kRead && totals.bytes > kBulkPayloadBytesMax)
    return frameName(header) + ": " + number(totals.bytes) + " bytes, at most " +
           number(kBulkPayloadBytesMax);
  if (!carriesPayload(header)) return "";  // checkHeader has seen to it that there is none
  if (header.payloadBytes != totals.bytes)
    return frameName(header) + ": payload of " + number(header.payloadBytes) +
           " bytes, extents of " + number(totals.bytes);
  if (header.sumCount != totals.pieces)
    return frameName(header) + ": " + number(header.sumCount) + " sums for " +
           number(totals.pieces) + " pieces";
  return "";
}

std::string checkStatus(const BulkHeader& header) {
  if (header.status > BulkStatus::kRetry)
    return "unknown status " + number(static_cast<uint8_t>(header.status));
  if (!(header.flags & kBulkReply) && header.status != BulkStatus::kOk)
    return "status " + number(static_cast<uint8_t>(header.status)) + " in a request";
  bool failed = header.status == BulkStatus::kIoError;
  if (failed != (header.errorCode != 0))
    return "error code " + number(header.errorCode) + " with status " +
           number(static_cast<uint8_t>(header.status));
  return "";
}

std::string checkCounts(const BulkHeader& header) {
  uint32_t least = header.op == BulkOp::kHello || header.status != BulkStatus::kOk ? 0 : 1;
  uint32_t most = header.op == BulkOp::kHello ? 0 : kBulkExtentsMax;
  if (header.extentCount < least || header.extentCount > most)
    return number(header.extentCount) + " extents, must be " + number(least) + " to " +
           number(most);
  bool payload = carriesPayload(header);
  if (header.sumCount > (payload ? kBulkSumsMax : 0))
    return number(header.sumCount) + " sums, at most " + number(payload ? kBulkSumsMax : 0);
  if (header.payloadBytes > (payload ? kBulkPayloadBytesMax : 0))
    return "payload of " + number(header.payloadBytes) + " bytes, at most " +
           number(payload ? kBulkPayloadBytesMax : 0);
  return "";
}

}  // namespace

uint32_t blockPieces(uint64_t offsetBytes, uint64_t lengthBytes) {
  if (lengthBytes == 0) return 0;
  return static_cast<uint32_t>((offsetBytes + (lengthBytes - 1)) / kBlockBytes -
                               offsetBytes / kBlockBytes + 1);
}

uint64_t blockSum(const void* data, size_t bytes) {
  return XXH3_64bits(data, bytes);
}

uint32_t sumPieces(uint64_t offsetBytes, std::span<const std::byte> data, uint64_t* sums) {
  uint32_t count = 0;
  forEachPiece(offsetBytes, data.size(), [&](size_t begin, size_t bytes) {
    sums[count++] = blockSum(data.data() + begin, bytes);
    return true;
  });
  return count;
}

bool verifyPieces(uint64_t offsetBytes, std::span<const std::byte> data, const uint64_t* sums) {
  return forEachPiece(offsetBytes, data.size(), [&](size_t begin, size_t bytes) {
    return blockSum(data.data() + begin, bytes) == *sums++;
  });
}

void sealHead(BulkHeader& header, std::span<const std::byte> tail) {
  header.sum = headSum(header, tail);
}

std::string checkHeader(const BulkHeader& header) {
  if (header.magic != kBulkMagic) return "not a bulk frame: magic " + number(header.magic);
  if (header.version != kBulkVersion)
    return "bulk frame version " + number(header.version) + ", only " + number(kBulkVersion) +
           " is known here";
  if (opName(header.op) == nullptr)
    return "unknown operation " + number(static_cast<uint8_t>(header.op));
  if (header.flags & ~kBulkReply)
    return frameName(header) + ": unknown flags " + number(header.flags);
  if (header.reserved != 0) return frameName(header) + ": reserved field is not 0";
  if (auto wrong = checkStatus(header); !wrong.empty()) return frameName(header) + ": " + wrong;
  if (auto wrong = checkCounts(header); !wrong.empty()) return frameName(header) + ": " + wrong;
  return "";
}

size_t tailBytes(const BulkHeader& header) {
  return header.extentCount * sizeof(BulkExtent) + header.sumCount * sizeof(uint64_t);
}

std::string checkHead(const BulkHeader& header, std::span<const std::byte> tail) {
  if (auto wrong = checkHeader(header); !wrong.empty()) return wrong;
  if (tail.size() != tailBytes(header))
    return frameName(header) + ": " + number(tail.size()) + " bytes of extents and sums, must be " +
           number(tailBytes(header));
  if (headSum(header, tail) != header.sum) return frameName(header) + ": head sum does not match";
  Totals totals;
  for (uint32_t i = 0; i < header.extentCount; ++i) {
    BulkExtent extent;
    std::memcpy(&extent, tail.data() + i * sizeof extent, sizeof extent);
    if (auto wrong = checkExtent(header, extent); !wrong.empty())
      return frameName(header) + ": extent " + number(i) + ": " + wrong;
    totals.bytes += extent.lengthBytes;
    totals.pieces += blockPieces(extent.offsetBytes, extent.lengthBytes);
  }
  return checkTotals(header, totals);
}

uint32_t workerOf(const ObjectId& object, uint32_t workers) {
  if (workers <= 1) return 0;
  auto bytes = encodeObjectId(object);
  return static_cast<uint32_t>(XXH3_64bits(bytes.data(), bytes.size()) % workers);
}

}  // namespace trainfs
