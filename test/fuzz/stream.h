// A stream of bulk frames out of fuzzed bytes, and the pieces it arrives in.
#pragma once

#include <random>

#include "frames.h"
#include "target.h"

namespace trainfs::fuzz {

// The first bytes of an input steer, the rest is the stream.
struct Stream {
  uint32_t seed = 0;
  std::vector<uint8_t> bytes;
};

// `replies`: which kind a mended frame is.
inline bool readStream(const uint8_t* data, size_t size, bool replies, Stream& stream) {
  if (size < 5) return false;
  bool mend = data[0] & 1;
  std::memcpy(&stream.seed, data + 1, sizeof stream.seed);
  stream.bytes.assign(data + 5, data + size);
  for (size_t at = 0; stream.bytes.size() - at >= sizeof(BulkHeader);) {
    auto rest = std::span(stream.bytes).subspan(at);
    BulkHeader header;
    std::memcpy(&header, rest.data(), sizeof header);
    if (mend) {
      header.flags = replies ? kBulkReply : 0;
      std::memcpy(rest.data(), &header, sizeof header);
      mendHead(rest);
      std::memcpy(&header, rest.data(), sizeof header);
    }
    if (!checkHeader(header).empty() || tailBytes(header) > rest.size() - sizeof header) break;
    auto tail = rest.subspan(sizeof header, tailBytes(header));
    sealHead(header, std::as_bytes(tail));
    std::memcpy(rest.data(), &header, sizeof header);
    at += std::min(rest.size(), sizeof header + tail.size() + header.payloadBytes);
  }
  return true;
}

inline std::vector<std::string> streamSeeds(bool replies) {
  std::vector<std::string> seeds;
  std::string all;
  for (auto& frame : legalFrames(replies)) {
    seeds.push_back(std::string(5, '\1') + frame);
    seeds.push_back(std::string(5, '\0') + frame);
    all += frame;
  }
  seeds.push_back(std::string(5, '\2') + all);
  seeds.push_back(std::string(5, '\3') + all);
  return seeds;
}

// Hands out the stream in pieces: as large as they are asked for, or random ones.
class Pieces {
 public:
  Pieces(const Stream& stream, bool random)
      : bytes_(stream.bytes), random_(random), engine_(stream.seed) {}
  // Fills some of `space`; 0: the stream is over.
  size_t fill(std::span<std::byte> space) {
    size_t most = std::min(space.size(), bytes_.size() - at_);
    if (most > 1 && random_)
      most = 1 + engine_() % std::min<size_t>(most, engine_() % 2 ? 8 : 4096);
    if (most > 0) std::memcpy(space.data(), bytes_.data() + at_, most);
    at_ += most;
    return most;
  }

 private:
  const std::vector<uint8_t>& bytes_;
  bool random_;
  std::minstd_rand engine_;
  size_t at_ = 0;
};

}  // namespace trainfs::fuzz
