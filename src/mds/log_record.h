// Records of the log and the heads of its segments, as bytes. Little-endian; docs/format-mdt.md.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainfs/types.h"

namespace trainfs::mds {

inline constexpr uint32_t kLogVersion = 1;
inline constexpr size_t kLogAlignment = 8;  // of records

// In the first sector of a segment; the rest of its first 4 KiB is empty.
inline constexpr size_t kSegmentHeadBytes = 4096;
struct SegmentHead {
  uint64_t sequence = 0;  // grows with every use of any segment
  uint64_t seed = 0;      // of the sums in it: what an earlier use left is no record
};
std::string encodeSegmentHead(const SegmentHead& head);
// Nothing: never used. Throws kj::Exception when damaged, or of a newer version.
std::optional<SegmentHead> decodeSegmentHead(std::string_view bytes, std::string_view path);

// Commands of consecutive indexes, written together.
struct LogRecord {
  uint64_t firstIndex = 0;
  std::vector<std::string_view> commands;  // encoded; views of what was decoded
  uint64_t lastIndex() const { return firstIndex + commands.size() - 1; }
};
size_t logRecordBytes(size_t commands, size_t commandBytes);
std::string encodeLogRecord(const LogRecord& record, uint64_t seed);

// Reads the records of a segment one after the other.
class LogRecordReader {
 public:
  // `segment` is all of it, and must stay.
  LogRecordReader(std::string_view segment, uint64_t seed)
      : segment_(segment), seed_(seed), at_(kSegmentHeadBytes) {}

  // The next sound record, also behind damaged ones.
  std::optional<LogRecord> next();
  // Where the first bytes were skipped to get to the last record; nothing: it followed its
  // predecessor.
  std::optional<size_t> skippedAt() const { return skippedAt_; }

 private:
  std::optional<LogRecord> recordAt(size_t offset, size_t& bytes) const;

  std::string_view segment_;
  uint64_t seed_;
  size_t at_;
  std::optional<size_t> skippedAt_;
};

}  // namespace trainfs::mds
