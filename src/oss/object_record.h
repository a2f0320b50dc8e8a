// What the object index stores per object, as plain values and as bytes. Pure. docs/format-ost.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainfs::oss {

struct ObjectRecord {
  bool dirty = false;
  uint64_t version = 0;  // grows with each clean state
  uint64_t sizeBytes = 0;
};

struct StoredRecord {
  ObjectRecord record;
  std::vector<uint64_t> firstSums;  // of chunk 0
};

// Of the index as a whole: the server that has it, or had it last.
struct StoredRun {
  uint64_t boot = 0;      // of the machine
  uint64_t verifier = 0;  // see ObjectIndex; 0: another one must be taken
  bool serving = false;   // no orderly stop since
};

// What the MDS tells older copies of the target by.
struct StoredStart {
  uint64_t accepted = 0;  // the last start that the MDS is known to have accepted; 0: none yet
  uint64_t current = 0;   // the one that is offered to it
};

// Decoders: nothing for bytes that are damaged, or of another version.
std::string encodeRecord(const StoredRecord& stored);
std::optional<StoredRecord> decodeRecord(std::string_view bytes);

// The sums of any other chunk.
std::string encodeSums(const std::vector<uint64_t>& sums);
std::optional<std::vector<uint64_t>> decodeSums(std::string_view bytes);

std::string encodeRun(const StoredRun& run);
std::optional<StoredRun> decodeRun(std::string_view bytes);

std::string encodeStart(const StoredStart& start);
std::optional<StoredStart> decodeStart(std::string_view bytes);

}  // namespace trainfs::oss
