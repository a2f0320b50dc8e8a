#include "oss/frame_reader.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace trainfs::oss {

FrameReader::Step FrameReader::broken(std::string why) {
  error_ = std::move(why);
  state_ = State::kBroken;
  return Step::kBroken;
}

FrameReader::Step FrameReader::next() {
  switch (state_) {
    case State::kHeader:
      return readHeader();
    case State::kTail:
      return readTail();
    case State::kAwaitPayload:
      return Step::kHead;
    case State::kPayload:
      if (!payloadRest_.empty()) return Step::kMore;
      state_ = State::kHeader;
      return Step::kFrame;
    case State::kBroken:
      return Step::kBroken;
  }
  std::abort();
}

FrameReader::Step FrameReader::readHeader() {
  if (available() < sizeof header_) return Step::kMore;
  std::memcpy(&header_, buffer_.data() + begin_, sizeof header_);
  if (auto wrong = checkHeader(header_); !wrong.empty()) return broken(std::move(wrong));
  if (header_.flags & kBulkReply) return broken("a reply where a request is due");
  begin_ += sizeof header_;
  state_ = State::kTail;
  return readTail();
}

FrameReader::Step FrameReader::readTail() {
  size_t bytes = tailBytes(header_);
  if (available() < bytes) return Step::kMore;
  std::memcpy(tail_.data(), buffer_.data() + begin_, bytes);
  if (auto wrong = checkHead(header_, std::span(tail_).first(bytes)); !wrong.empty())
    return broken(std::move(wrong));
  begin_ += bytes;
  state_ = State::kAwaitPayload;
  return Step::kHead;
}

void FrameReader::setPayload(std::span<std::byte> memory) {
  if (state_ != State::kAwaitPayload || memory.size() != header_.payloadBytes) std::abort();
  size_t here = std::min(available(), memory.size());
  if (here > 0) std::memcpy(memory.data(), buffer_.data() + begin_, here);
  begin_ += here;
  payloadRest_ = memory.subspan(here);
  state_ = State::kPayload;
}

std::span<std::byte> FrameReader::space() {
  if (state_ == State::kPayload) return payloadRest_;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, available());
    end_ -= begin_;
    begin_ = 0;
  }
  return std::span(buffer_).subspan(end_);
}

void FrameReader::received(size_t bytes) {
  if (state_ == State::kPayload)
    payloadRest_ = payloadRest_.subspan(bytes);
  else
    end_ += bytes;
}

std::span<const BulkExtent> FrameReader::extents() const {
  return {reinterpret_cast<const BulkExtent*>(tail_.data()), header_.extentCount};
}

std::span<const uint64_t> FrameReader::sums() const {
  return {
      reinterpret_cast<const uint64_t*>(tail_.data() + header_.extentCount * sizeof(BulkExtent)),
      header_.sumCount};
}

}  // namespace trainfs::oss
