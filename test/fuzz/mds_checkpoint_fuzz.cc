// The file that says from where an MDT is recovered: a kj exception that says what is damaged, or
// a checkpoint that the next start finds, too, and that another one can follow.
#include <stdlib.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "lib/temp_dir.h"
#include "mds/checkpoint_file.h"
#include "refusal.h"

using namespace trainfs;
using namespace trainfs::mds;
using fuzz::require;

namespace {

constexpr size_t kPlaceBytes = 4096;  // as in src/mds/checkpoint_file.cc

// Where nothing waits for a disk.
const test::TempDir& directory() {
  static bool inMemory = setenv("TMPDIR", "/dev/shm", /*overwrite=*/0) == 0;
  require(inMemory);
  static test::TempDir directory;
  return directory;
}

std::string fileOf(const std::vector<Checkpoint>& saved) {
  std::filesystem::remove(directory() / "checkpoint");
  CheckpointFile file(directory().path());
  for (auto& checkpoint : saved) file.save(checkpoint);
  return directory().read("checkpoint");
}

bool same(const Checkpoint& a, const Checkpoint& b) {
  return a.appliedIndex == b.appliedIndex && a.clean == b.clean && a.meta == b.meta;
}

}  // namespace

// The first byte says whether sums are made to fit; half of the others are the first place's, half
// the second's.
std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> seeds;
  Checkpoint first{.appliedIndex = 7, .clean = false, .meta = std::string(152, 'm')};
  Checkpoint second{.appliedIndex = 9, .clean = true, .meta = "meta"};
  for (auto& saved : {std::vector{first}, std::vector{first, second}}) {
    auto file = fileOf(saved);
    seeds.push_back('\0' + file.substr(0, 256) + file.substr(kPlaceBytes, 256));
    seeds.push_back('\1' + seeds.back().substr(1));
  }
  return seeds;
}

namespace {

// Of a place; as in src/mds/checkpoint_file.cc.
constexpr size_t kSequenceOffset = 8, kLengthOffset = 25, kMetaOffset = 29;

// To reach what the sum guards.
void seal(std::string& place) {
  uint32_t metaBytes;
  uint64_t sum;
  if (place.size() < kMetaOffset + sizeof sum) return;
  std::memcpy(&metaBytes, place.data() + kLengthOffset, sizeof metaBytes);
  if (metaBytes > place.size() - kMetaOffset - sizeof sum) return;
  sum = XXH3_64bits(place.data(), kMetaOffset + metaBytes);
  std::memcpy(place.data() + kMetaOffset + metaBytes, &sum, sizeof sum);
}

std::string placeOf(std::string_view bytes, bool sealed) {
  std::string place(bytes);
  // Checkpoints are numbered; nobody ever makes the last of 2^64.
  if (place.size() >= kMetaOffset) place[kSequenceOffset + 7] = 0;
  if (sealed) seal(place);
  return place;
}

std::optional<Checkpoint> load() {
  return CheckpointFile(directory().path()).load();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  auto places = fuzz::text(data + 1, size - 1);
  auto first = placeOf(places.substr(0, places.size() / 2), data[0] & 1);
  auto second = placeOf(places.substr(places.size() / 2), data[0] & 1);
  first.resize(kPlaceBytes);
  directory().write("checkpoint", first + second);
  fuzz::mayRefuse([&] {
    auto found = load();
    require(found.has_value());
    auto again = load();
    require(again && same(*found, *again));
    CheckpointFile file(directory().path());
    file.load();
    Checkpoint next{.appliedIndex = found->appliedIndex + 1, .clean = !found->clean, .meta = "m"};
    file.save(next);
    require(same(*load(), next));
  });
  return 0;
}
