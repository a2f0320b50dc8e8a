#include "fuse_client/reply_buffer.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>

#include "trainfs/object_id.h"

namespace trainfs::client {

std::span<std::byte> ReplyBuffer::space() {
  if (begin_ > 0) {
    std::memmove(bytes_.data(), bytes_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  return std::span(bytes_).subspan(end_);
}

ReplyBuffer::Parsed ReplyBuffer::parse(ReplyHead& head, std::string& wrong) {
  auto ready = std::span(bytes_).subspan(begin_, end_ - begin_);
  if (ready.size() < sizeof head.header) return Parsed::kIncomplete;
  std::memcpy(&head.header, ready.data(), sizeof head.header);
  wrong = checkHeader(head.header);
  if (wrong.empty() && !(head.header.flags & kBulkReply)) wrong = "a request, not a reply";
  if (!wrong.empty()) return Parsed::kMalformed;
  size_t tail = tailBytes(head.header);
  if (ready.size() < sizeof head.header + tail) return Parsed::kIncomplete;
  auto tailSpan = ready.subspan(sizeof head.header, tail);
  wrong = checkHead(head.header, tailSpan);
  if (!wrong.empty()) return Parsed::kMalformed;
  size_t extentBytes = head.header.extentCount * sizeof(BulkExtent);
  std::memcpy(head.extents.data(), tailSpan.data(), extentBytes);
  std::memcpy(head.sums.data(), tailSpan.data() + extentBytes, tail - extentBytes);
  begin_ += sizeof head.header + tail;
  return Parsed::kHead;
}

size_t ReplyBuffer::take(std::span<std::byte> to) {
  size_t bytes = std::min(to.size(), end_ - begin_);
  if (bytes > 0) std::memcpy(to.data(), bytes_.data() + begin_, bytes);
  begin_ += bytes;
  return bytes;
}

size_t ReplyBuffer::skip(size_t bytes) {
  bytes = std::min(bytes, end_ - begin_);
  begin_ += bytes;
  return bytes;
}

std::string matchReply(const Request& request, const ReplyHead& head) {
  const BulkHeader& header = head.header;
  if (header.op != request.op) return "the operation is not the one asked for";
  if (header.status != BulkStatus::kOk) return "";
  if (header.extentCount != request.slices.size())
    return fmt::format("{} extents, asked for {}", header.extentCount, request.slices.size());
  for (size_t i = 0; i < request.slices.size(); ++i) {
    const Slice& slice = request.slices[i];
    const BulkExtent& extent = head.extents[i];
    auto id = encodeObjectId(slice.object);
    if (std::memcmp(extent.object, id.data(), id.size()) != 0)
      return fmt::format("extent {} is of another object", i);
    bool ranged = request.op == BulkOp::kRead || request.op == BulkOp::kWrite;
    if (!ranged) continue;
    if (extent.offsetBytes != slice.offsetBytes)
      return fmt::format("extent {}: offset {}, asked for {}", i, extent.offsetBytes,
                         slice.offsetBytes);
    bool shortWrite = request.op == BulkOp::kWrite && extent.lengthBytes < slice.lengthBytes;
    if (extent.lengthBytes > slice.lengthBytes || shortWrite)
      return fmt::format("extent {}: length {}, asked for {}", i, extent.lengthBytes,
                         slice.lengthBytes);
  }
  return "";
}

void zeroWhatIsMissing(const Request& request, const ReplyHead& head) {
  for (size_t i = 0; i < request.slices.size(); ++i) {
    const Slice& slice = request.slices[i];
    uint32_t done = head.extents[i].lengthBytes;
    if (done < slice.lengthBytes) std::memset(slice.data + done, 0, slice.lengthBytes - done);
  }
}

std::string verifyRead(const Request& request, const ReplyHead& head) {
  const uint64_t* sums = head.sums.data();
  for (size_t i = 0; i < request.slices.size(); ++i) {
    const Slice& slice = request.slices[i];
    uint32_t length = head.extents[i].lengthBytes;
    if (!verifyPieces(slice.offsetBytes, {slice.data, length}, sums)) {
      uint64_t actual[kFrameBytes / kBlockBytes + 1];
      uint32_t pieces = sumPieces(slice.offsetBytes, {slice.data, length}, actual);
      uint32_t bad = 0;
      while (bad + 1 < pieces && actual[bad] == sums[bad]) ++bad;
      uint64_t offset =
          bad == 0 ? slice.offsetBytes : (slice.offsetBytes / kBlockBytes + bad) * kBlockBytes;
      return fmt::format("object {} offset {}: sum of the data {:016x}, sum sent with it {:016x}",
                         objectIdHex(slice.object), offset, actual[bad], sums[bad]);
    }
    sums += blockPieces(slice.offsetBytes, length);
  }
  return "";
}

}  // namespace trainfs::client
