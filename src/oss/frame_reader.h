// Cuts the byte stream of one connection into bulk frames: head (header, extents, sums), then
// payload. Pure: no socket, no clock; whatever the bytes are, it ends in frames or in words that
// say what is wrong.
//
//   while (true) switch (reader.next()) {
//     kMore:   receive into reader.space(), then reader.received(bytes)
//     kHead:   a checked head is there; give reader.setPayload() memory for its payloadBytes
//     kFrame:  the frame is complete; header(), extents(), sums() stay valid until the next next()
//     kBroken: reader.error() says why; nothing more can come of this stream
//   }
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "trainfs/bulk.h"

namespace trainfs::oss {

class FrameReader {
 public:
  enum class Step : uint8_t { kMore, kHead, kFrame, kBroken };

  Step next();

  // Where the next bytes belong; not empty after kMore. Payload goes straight to its own memory.
  std::span<std::byte> space();
  void received(size_t bytes);

  void setPayload(std::span<std::byte> memory);

  const BulkHeader& header() const { return header_; }
  std::span<const BulkExtent> extents() const;
  std::span<const uint64_t> sums() const;
  const std::string& error() const { return error_; }

  // True between frames: an end of the stream here loses nothing.
  bool betweenFrames() const { return state_ == State::kHeader && begin_ == end_; }

 private:
  enum class State : uint8_t { kHeader, kTail, kAwaitPayload, kPayload, kBroken };
  // A few frames without payload fit; of a write's payload at most this much is copied.
  static constexpr size_t kBufferBytes = 8 * kKiB;
  static_assert(kBufferBytes >= kBulkHeadBytesMax);

  size_t available() const { return end_ - begin_; }
  Step readHeader();
  Step readTail();
  Step broken(std::string why);

  State state_ = State::kHeader;
  BulkHeader header_;
  alignas(8) std::array<std::byte, kBulkHeadBytesMax - sizeof(BulkHeader)> tail_;
  std::span<std::byte> payloadRest_;
  size_t begin_ = 0, end_ = 0;  // received and not yet used bytes of buffer_
  std::array<std::byte, kBufferBytes> buffer_;
  std::string error_;
};

}  // namespace trainfs::oss
