// What an OSS makes of a connection's bytes: frames or words, the same ones in whatever pieces the
// bytes arrive, and never more room asked for than a frame may have.
#include <memory>

#include "oss/frame_reader.h"
#include "stream.h"

using namespace trainfs;
using fuzz::require;
using Step = oss::FrameReader::Step;

std::vector<std::string> fuzz::seeds() {
  return streamSeeds(false);
}

namespace {

// All that a stream came to.
std::string readAll(const fuzz::Stream& stream, bool inPieces) {
  fuzz::Pieces pieces(stream, inPieces);
  oss::FrameReader reader;
  std::string found;
  std::unique_ptr<std::byte[]> payload;
  while (true) {
    switch (reader.next()) {
      case Step::kMore: {
        auto space = reader.space();
        require(!space.empty());
        size_t bytes = pieces.fill(space);
        if (bytes == 0) return found + (reader.betweenFrames() ? "whole" : "cut off");
        reader.received(bytes);
        break;
      }
      case Step::kHead:
        require(reader.header().payloadBytes <= kBulkPayloadBytesMax);
        payload = std::make_unique_for_overwrite<std::byte[]>(reader.header().payloadBytes);
        reader.setPayload({payload.get(), reader.header().payloadBytes});
        break;
      case Step::kFrame: {
        auto& header = reader.header();
        found.append(reinterpret_cast<const char*>(&header), sizeof header);
        for (auto& extent : reader.extents())
          found.append(reinterpret_cast<const char*>(&extent), sizeof extent);
        for (uint64_t sum : reader.sums()) found += std::to_string(sum);
        found += std::to_string(blockSum(payload.get(), header.payloadBytes));
        break;
      }
      case Step::kBroken:
        require(!reader.error().empty() && reader.next() == Step::kBroken);
        return found + reader.error();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Stream stream;
  if (readStream(data, size, /*replies=*/false, stream))
    require(readAll(stream, true) == readAll(stream, false));
  return 0;
}
