// Bulk frames for fuzz targets: legal ones to begin with, and what brings a damaged one near to a
// legal one again, so that mutations get far. The fuzzer cannot invert XXH3.
#pragma once

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "trainfs/bulk.h"
#include "trainfs/object_id.h"

namespace trainfs::fuzz {

inline std::string makeFrame(BulkHeader header, std::vector<BulkExtent> extents,
                             const std::string& payload = "") {
  std::vector<uint64_t> sums;
  size_t done = 0;
  if (!payload.empty()) {
    for (auto& extent : extents) {
      std::vector<uint64_t> pieces(blockPieces(extent.offsetBytes, extent.lengthBytes));
      std::span data(reinterpret_cast<const std::byte*>(payload.data()) + done, extent.lengthBytes);
      sumPieces(extent.offsetBytes, data, pieces.data());
      sums.insert(sums.end(), pieces.begin(), pieces.end());
      done += extent.lengthBytes;
    }
  }
  header.extentCount = extents.size();
  header.sumCount = sums.size();
  header.payloadBytes = payload.size();
  std::string tail(tailBytes(header), '\0');
  if (!extents.empty())
    std::memcpy(tail.data(), extents.data(), extents.size() * sizeof(BulkExtent));
  if (!sums.empty())
    std::memcpy(tail.data() + extents.size() * sizeof(BulkExtent), sums.data(), sums.size() * 8);
  sealHead(header, std::as_bytes(std::span(tail)));
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + tail + payload;
}

inline BulkExtent makeExtent(uint64_t inode, uint64_t offset, uint32_t length, uint32_t flags = 0) {
  BulkExtent extent{};
  auto id = encodeObjectId({InodeId{inode}, 1, 0, 0});
  std::memcpy(extent.object, id.data(), id.size());
  extent.offsetBytes = offset;
  extent.lengthBytes = length;
  extent.flags = flags;
  return extent;
}

// One of each kind, as requests or as replies.
inline std::vector<std::string> legalFrames(bool replies) {
  std::vector<std::string> frames;
  auto header = [&](BulkOp op) {
    BulkHeader header{.op = op, .requestId = 7 + frames.size(), .session = 3, .epoch = 1};
    header.chainVersion = 1;
    header.flags = replies ? kBulkReply : 0;
    return header;
  };
  std::string data(700, 'x');
  frames.push_back(makeFrame(header(BulkOp::kHello), {}));
  std::vector<BulkExtent> two = {makeExtent(5, 65500, 300), makeExtent(6, 0, 400)};
  frames.push_back(makeFrame(header(BulkOp::kRead), two, replies ? data : ""));
  frames.push_back(makeFrame(header(BulkOp::kWrite), two, replies ? "" : data));
  frames.push_back(makeFrame(header(BulkOp::kPunch), {makeExtent(5, 4096, 65536)}));
  frames.push_back(makeFrame(header(BulkOp::kSync), {makeExtent(5, 0, 0), makeExtent(6, 0, 0)}));
  frames.push_back(makeFrame(header(BulkOp::kStat), {makeExtent(5, 0, 0, 1)}));
  if (replies) {
    BulkHeader refused = header(BulkOp::kRead);
    refused.status = BulkStatus::kIoError;
    refused.errorCode = 5;
    frames.push_back(makeFrame(refused, {}));
  }
  return frames;
}

// Makes the frame at the start of `bytes` legal as far as `bytes` has room for its extents. Returns
// the bytes of its head, which may be more than there are.
inline size_t mendHead(std::span<uint8_t> bytes) {
  BulkHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.magic = kBulkMagic;
  header.version = kBulkVersion;
  constexpr BulkOp kOps[] = {BulkOp::kHello, BulkOp::kRead, BulkOp::kWrite,
                             BulkOp::kPunch, BulkOp::kSync, BulkOp::kStat};
  header.op = kOps[static_cast<uint8_t>(header.op) % std::size(kOps)];
  header.status = BulkStatus::kOk;
  header.flags &= kBulkReply;
  header.errorCode = 0;
  header.reserved = 0;
  size_t extents = std::min<size_t>(header.extentCount % (kBulkExtentsMax + 1),
                                    (bytes.size() - sizeof header) / sizeof(BulkExtent));
  bool reply = header.flags & kBulkReply;
  bool ranged =
      header.op == BulkOp::kRead || header.op == BulkOp::kWrite || header.op == BulkOp::kPunch;
  uint32_t bytesOfAll = 0, pieces = 0;
  for (size_t i = 0; i < extents; ++i) {
    BulkExtent given, extent{};
    std::memcpy(&given, bytes.data() + sizeof header + i * sizeof given, sizeof given);
    std::memcpy(extent.object, given.object, sizeof extent.object);
    extent.object[0] |= 1;
    bool placed = header.op != BulkOp::kSync && (header.op != BulkOp::kStat || reply);
    if (placed) extent.offsetBytes = given.offsetBytes & kFileBytesMax >> 1;
    if (ranged) extent.lengthBytes = given.lengthBytes % (kBulkPayloadBytesMax / kBulkExtentsMax);
    if (ranged && !reply) extent.lengthBytes = std::max(extent.lengthBytes, 1u);
    extent.flags = given.flags & (reply ? kExtentMustExist | kExtentMissing : kExtentMustExist);
    std::memcpy(bytes.data() + sizeof header + i * sizeof extent, &extent, sizeof extent);
    bytesOfAll += extent.lengthBytes;
    pieces += blockPieces(extent.offsetBytes, extent.lengthBytes);
  }
  bool payload = header.op == (reply ? BulkOp::kRead : BulkOp::kWrite);
  header.extentCount = static_cast<uint16_t>(header.op == BulkOp::kHello ? 0 : extents);
  header.payloadBytes = payload ? bytesOfAll : 0;
  header.sumCount = static_cast<uint16_t>(payload ? pieces : 0);
  std::memcpy(bytes.data(), &header, sizeof header);
  return sizeof header + tailBytes(header);
}

}  // namespace trainfs::fuzz
