#include "mds/log_record.h"

#include <kj/debug.h>
#include <xxhash.h>

#include <algorithm>

#include "trainfs/codec.h"

namespace trainfs::mds {
namespace {

constexpr uint32_t kSegmentMagic = 0x4745'5354;  // "TSEG"
constexpr uint32_t kRecordMagic = 0x434f'4c54;   // "TLOC"

// magic:32 . bytes of the commands:32 . first index:64 . commands:32 . check:32 . sum:64
constexpr size_t kRecordHeadBytes = 32;
constexpr size_t kCheckOffset = 20;
constexpr size_t kSumOffset = 24;

constexpr size_t kHeadBytes = 4 + 4 + 8 + 8 + 8;

// Of the head alone, so that bytes which only look like one cost no sum over what it claims.
uint32_t checkOf(std::string_view record, uint64_t seed) {
  return static_cast<uint32_t>(XXH3_64bits_withSeed(record.data(), kCheckOffset, seed));
}

uint64_t sumOf(std::string_view record, uint64_t seed) {
  auto head = XXH3_64bits_withSeed(record.data(), kSumOffset, seed);
  return XXH3_64bits_withSeed(record.data() + kRecordHeadBytes, record.size() - kRecordHeadBytes,
                              head);
}

size_t aligned(size_t bytes) {
  return (bytes + kLogAlignment - 1) / kLogAlignment * kLogAlignment;
}

}  // namespace

std::string encodeSegmentHead(const SegmentHead& head) {
  auto bytes =
      Writer().put(kSegmentMagic).put(kLogVersion).put(head.sequence).put(head.seed).take();
  bytes += Writer().put(XXH3_64bits(bytes.data(), bytes.size())).take();
  bytes.resize(kSegmentHeadBytes);
  return bytes;
}

std::optional<SegmentHead> decodeSegmentHead(std::string_view bytes, std::string_view path) {
  auto head = bytes.substr(0, kHeadBytes);
  if (std::all_of(head.begin(), head.end(), [](char byte) { return byte == 0; }))
    return std::nullopt;
  Reader reader(head);
  auto magic = reader.get<uint32_t>();
  auto version = reader.get<uint32_t>();
  SegmentHead decoded{.sequence = reader.get<uint64_t>(), .seed = reader.get<uint64_t>()};
  auto sum = reader.get<uint64_t>();
  KJ_REQUIRE(magic == kSegmentMagic, "a damaged segment of the log: its head is none",
             std::string(path));
  KJ_REQUIRE(version <= kLogVersion, "a log of a newer version than this program knows",
             std::string(path), version, kLogVersion);
  KJ_REQUIRE(reader.finished() && sum == XXH3_64bits(head.data(), kHeadBytes - sizeof sum),
             "a damaged segment of the log: the sum of its head is wrong", std::string(path));
  return decoded;
}

size_t logRecordBytes(size_t commands, size_t commandBytes) {
  return aligned(kRecordHeadBytes + commands * sizeof(uint32_t) + commandBytes);
}

std::string encodeLogRecord(const LogRecord& record, uint64_t seed) {
  Writer commands;
  for (auto command : record.commands) commands.putString(command);
  auto payload = commands.take();
  auto bytes = Writer()
                   .put(kRecordMagic)
                   .put(static_cast<uint32_t>(payload.size()))
                   .put(record.firstIndex)
                   .put(static_cast<uint32_t>(record.commands.size()))
                   .put(uint32_t{0})
                   .put(uint64_t{0})
                   .take();
  bytes += payload;
  auto check = Writer().put(checkOf(bytes, seed)).take();
  bytes.replace(kCheckOffset, check.size(), check);
  auto sum = Writer().put(sumOf(bytes, seed)).take();
  bytes.replace(kSumOffset, sum.size(), sum);
  bytes.resize(aligned(bytes.size()));
  return bytes;
}

std::optional<LogRecord> LogRecordReader::recordAt(size_t offset, size_t& bytes) const {
  auto headBytes = segment_.substr(offset, kRecordHeadBytes);
  Reader head(headBytes);
  if (head.get<uint32_t>() != kRecordMagic) return std::nullopt;
  auto payloadBytes = head.get<uint32_t>();
  LogRecord record{.firstIndex = head.get<uint64_t>(), .commands = {}};
  auto count = head.get<uint32_t>();
  auto check = head.get<uint32_t>();
  auto sum = head.get<uint64_t>();
  if (!head.ok() || check != checkOf(headBytes, seed_)) return std::nullopt;
  if (payloadBytes > segment_.size() - offset - kRecordHeadBytes) return std::nullopt;
  auto whole = segment_.substr(offset, kRecordHeadBytes + payloadBytes);
  if (sum != sumOf(whole, seed_)) return std::nullopt;
  Reader payload(whole.substr(kRecordHeadBytes));
  for (uint32_t i = 0; i < count && payload.ok(); ++i)
    record.commands.push_back(payload.getString(payloadBytes));
  if (!payload.finished() || count == 0) return std::nullopt;
  bytes = aligned(whole.size());
  return record;
}

std::optional<LogRecord> LogRecordReader::next() {
  skippedAt_.reset();
  for (; at_ + kRecordHeadBytes <= segment_.size(); at_ += kLogAlignment) {
    size_t bytes = 0;
    if (auto record = recordAt(at_, bytes)) {
      at_ += bytes;
      return record;
    }
    if (!skippedAt_) skippedAt_ = at_;
  }
  return std::nullopt;
}

}  // namespace trainfs::mds
