// Records of the OST's index, and the names of its files: refused, or exactly these bytes.
#include "oss/object_record.h"
#include "target.h"
#include "trainfs/object_id.h"

using namespace trainfs;
using namespace trainfs::oss;
using fuzz::require;

std::vector<std::string> fuzz::seeds() {
  StoredRecord clean{.record = {.version = 3, .sizeBytes = 70000}, .firstSums = {1, 2}};
  StoredRecord dirty{.record = {.dirty = true, .version = 1}, .firstSums = {}};
  return {encodeRecord(clean), encodeRecord(dirty), encodeSums({1, 2, 3}),
          encodeRun({.boot = 5, .verifier = 6, .serving = true}),
          encodeStart({.accepted = 7, .current = 8}),
          objectIdHex({InodeId{5}, 1, 2, 3})};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto bytes = fuzz::text(data, size);
  if (auto stored = decodeRecord(bytes)) require(encodeRecord(*stored) == bytes);
  if (auto sums = decodeSums(bytes)) require(encodeSums(*sums) == bytes);
  if (auto run = decodeRun(bytes)) require(encodeRun(*run) == bytes);
  if (auto start = decodeStart(bytes)) require(encodeStart(*start) == bytes);
  if (auto id = parseObjectIdHex(bytes)) require(objectIdHex(*id) == bytes);
  return 0;
}
