// What a client makes of the bytes of an OSS: replies that fit its requests or words, the same ones
// in whatever pieces the bytes arrive; payload goes nowhere but into the request's memory.
#include <memory>

#include "fuse_client/reply_buffer.h"
#include "stream.h"

using namespace trainfs;
using namespace trainfs::client;
using fuzz::require;

std::vector<std::string> fuzz::seeds() {
  return streamSeeds(true);
}

namespace {

// A request that the reply may well be the answer to. Each slice has memory of its own, so that the
// address sanitizer guards its end.
struct Asked {
  Request request;
  std::vector<std::unique_ptr<std::byte[]>> memory;

  Asked(const ReplyHead& head, std::minstd_rand& random) {
    request.op = head.header.op;
    for (uint32_t i = 0; i < head.header.extentCount; ++i) {
      auto& extent = head.extents[i];
      Slice slice{.object = decodeObjectId(extent.object), .offsetBytes = extent.offsetBytes};
      bool other = random() % 64 == 0, more = random() % 4 == 0;
      slice.lengthBytes =
          std::min<uint64_t>(extent.lengthBytes + (more ? random() % 5000 : 0), kFrameBytes);
      if (other) slice.offsetBytes += 1;
      if (request.op == BulkOp::kRead) {
        memory.push_back(std::make_unique_for_overwrite<std::byte[]>(slice.lengthBytes));
        slice.data = memory.back().get();
      }
      request.slices.push_back(slice);
    }
    if (random() % 64 == 0) request.slices.emplace_back();
  }
};

// False: the stream was over first.
bool takePayload(ReplyBuffer& buffer, fuzz::Pieces& pieces, Request& request,
                 const ReplyHead& head) {
  for (uint32_t i = 0; i < head.header.extentCount; ++i) {
    std::span<std::byte> part(request.slices[i].data, head.extents[i].lengthBytes);
    while (!part.empty()) {
      size_t bytes = buffer.take(part);
      if (bytes == 0) bytes = pieces.fill(part);
      if (bytes == 0) return false;
      part = part.subspan(bytes);
    }
  }
  return true;
}

std::string readAll(const fuzz::Stream& stream, bool inPieces) {
  fuzz::Pieces pieces(stream, inPieces);
  std::minstd_rand random(stream.seed + 1);
  ReplyBuffer buffer;
  ReplyHead head;
  std::string found, wrong;
  while (true) {
    auto parsed = buffer.parse(head, wrong);
    if (parsed == ReplyBuffer::Parsed::kMalformed) {
      require(!wrong.empty());
      return found + wrong;
    }
    if (parsed == ReplyBuffer::Parsed::kIncomplete) {
      auto space = buffer.space();
      require(!space.empty());
      size_t bytes = pieces.fill(space);
      if (bytes == 0) return found;
      buffer.filled(bytes);
      continue;
    }
    found.append(reinterpret_cast<const char*>(&head.header), sizeof head.header);
    Asked asked(head, random);
    wrong = matchReply(asked.request, head);
    found += wrong;
    bool payload = wrong.empty() && head.header.payloadBytes > 0;
    if (payload) {
      if (!takePayload(buffer, pieces, asked.request, head)) return found;
      found += verifyRead(asked.request, head);
      zeroWhatIsMissing(asked.request, head);
    } else {
      size_t rest = head.header.payloadBytes;
      std::array<std::byte, 4096> dropped;
      while (rest > 0) {
        size_t bytes = buffer.skip(rest);
        if (bytes == 0)
          bytes = pieces.fill(std::span(dropped).first(std::min(rest, dropped.size())));
        if (bytes == 0) return found;
        rest -= bytes;
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Stream stream;
  if (readStream(data, size, /*replies=*/true, stream))
    require(readAll(stream, true) == readAll(stream, false));
  return 0;
}
