#include "oss/object_record.h"

#include "oss/block_sums.h"
#include "trainfs/codec.h"

namespace trainfs::oss {

namespace {

constexpr uint8_t kRecordVersion = 1;
constexpr uint8_t kRecordDirty = 1;
constexpr size_t kHeadBytes = 24;

}  // namespace

std::string encodeRecord(const StoredRecord& stored) {
  Writer writer;
  writer.put(kRecordVersion).put(static_cast<uint8_t>(stored.record.dirty ? kRecordDirty : 0));
  writer.put(uint16_t{0}).put(uint32_t{0});
  writer.put(stored.record.version).put(stored.record.sizeBytes);
  return writer.take() + encodeSums(stored.firstSums);
}

std::optional<StoredRecord> decodeRecord(std::string_view bytes) {
  Reader reader(bytes);
  if (reader.get<uint8_t>() != kRecordVersion) return std::nullopt;
  auto flags = reader.get<uint8_t>();
  auto unused = reader.get<uint16_t>() | reader.get<uint32_t>();
  if ((flags & ~kRecordDirty) != 0 || unused != 0) return std::nullopt;
  StoredRecord stored;
  stored.record.dirty = flags & kRecordDirty;
  stored.record.version = reader.get<uint64_t>();
  stored.record.sizeBytes = reader.get<uint64_t>();
  if (!reader.ok()) return std::nullopt;
  auto sums = decodeSums(bytes.substr(kHeadBytes));
  if (!sums) return std::nullopt;
  stored.firstSums = std::move(*sums);
  return stored;
}

std::string encodeSums(const std::vector<uint64_t>& sums) {
  Writer writer;
  for (uint64_t sum : sums) writer.put(sum);
  return writer.take();
}

std::optional<std::vector<uint64_t>> decodeSums(std::string_view bytes) {
  size_t count = bytes.size() / sizeof(uint64_t);
  if (bytes.size() % sizeof(uint64_t) != 0 || count > kChunkBlocks) return std::nullopt;
  Reader reader(bytes);
  std::vector<uint64_t> sums(count);
  for (auto& sum : sums) sum = reader.get<uint64_t>();
  return sums;
}

std::string encodeRun(const StoredRun& run) {
  return Writer().put(run.boot).put(run.verifier).put(static_cast<uint8_t>(run.serving)).take();
}

std::optional<StoredRun> decodeRun(std::string_view bytes) {
  Reader reader(bytes);
  StoredRun run{.boot = reader.get<uint64_t>(), .verifier = reader.get<uint64_t>()};
  uint8_t serving = reader.get<uint8_t>();
  if (!reader.finished() || serving > 1) return std::nullopt;
  run.serving = serving != 0;
  return run;
}

std::string encodeStart(const StoredStart& start) {
  return Writer().put(start.accepted).put(start.current).take();
}

std::optional<StoredStart> decodeStart(std::string_view bytes) {
  Reader reader(bytes);
  StoredStart start{.accepted = reader.get<uint64_t>(), .current = reader.get<uint64_t>()};
  if (!reader.finished() || start.current == 0) return std::nullopt;
  return start;
}

}  // namespace trainfs::oss
