#include "mds/checkpoint_file.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>

#include "mds/durable_files.h"
#include "trainfs/codec.h"

namespace trainfs::mds {
namespace {

constexpr uint32_t kMagic = 0x504b'4354;  // "TCKP"
constexpr uint32_t kVersion = 1;
constexpr uint64_t kPlaceBytes = 4096;
constexpr size_t kRecordBytesMax = 512;  // a sector: it is written as a whole or not at all
constexpr size_t kMetaBytesMax = 256;

struct Saved {
  Checkpoint checkpoint;
  uint64_t sequence = 0;
};

std::string encode(const Checkpoint& checkpoint, uint64_t sequence) {
  auto bytes = Writer()
                   .put(kMagic)
                   .put(kVersion)
                   .put(sequence)
                   .put(checkpoint.appliedIndex)
                   .put(static_cast<uint8_t>(checkpoint.clean))
                   .putString(checkpoint.meta)
                   .take();
  bytes += Writer().put(XXH3_64bits(bytes.data(), bytes.size())).take();
  KJ_ASSERT(bytes.size() <= kRecordBytesMax);
  return bytes;
}

// Nothing: that place was never used.
std::optional<Saved> decode(std::string_view bytes, const std::string& path, uint64_t offset) {
  if (bytes.find_first_not_of('\0') == bytes.npos) return std::nullopt;
  Reader reader(bytes);
  auto magic = reader.get<uint32_t>();
  auto version = reader.get<uint32_t>();
  Saved saved;
  saved.sequence = reader.get<uint64_t>();
  saved.checkpoint.appliedIndex = reader.get<uint64_t>();
  saved.checkpoint.clean = reader.get<uint8_t>() != 0;
  saved.checkpoint.meta = reader.getString(kMetaBytesMax);
  size_t summed = 4 + 4 + 8 + 8 + 1 + 4 + saved.checkpoint.meta.size();
  auto sum = reader.get<uint64_t>();
  KJ_REQUIRE(magic != kMagic || version <= kVersion,
             "a checkpoint of a newer version than this program knows", path, version, kVersion);
  KJ_REQUIRE(magic == kMagic && reader.ok() && sum == XXH3_64bits(bytes.data(), summed),
             "the checkpoint is damaged", path, offset);
  return saved;
}

}  // namespace

CheckpointFile::CheckpointFile(std::string directory)
    : directory_(std::move(directory)), path_(directory_ + "/checkpoint") {}

CheckpointFile::~CheckpointFile() {
  if (fd_ >= 0) close(fd_);
}

std::optional<Checkpoint> CheckpointFile::load() {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  if (fd_ < 0 && errno == ENOENT) return std::nullopt;
  if (fd_ < 0) KJ_FAIL_SYSCALL("open", errno, path_);
  std::optional<Saved> last;
  for (uint64_t place : {0, 1}) {
    auto bytes = readAt(fd_, place * kPlaceBytes, kRecordBytesMax, path_);
    auto saved = decode(bytes, path_, place * kPlaceBytes);
    if (saved && (!last || saved->sequence > last->sequence)) last = std::move(saved);
  }
  KJ_REQUIRE(last.has_value(), "the checkpoint is empty", path_);
  sequence_ = last->sequence;
  // Its writer may have been killed, or failed, before it was on disk. Who recovers from it uses
  // pages again that only the one before needs, so it is made durable first; written anew, because
  // after a flush that failed a second one would have nothing to do.
  writeAt(fd_, (sequence_ % 2) * kPlaceBytes, encode(last->checkpoint, sequence_), path_);
  syncData(fd_, path_);
  syncDirectory(directory_);
  return std::move(last->checkpoint);
}

void CheckpointFile::save(const Checkpoint& checkpoint) {
  auto bytes = encode(checkpoint, ++sequence_);
  if (fd_ < 0) return create(bytes);
  writeAt(fd_, (sequence_ % 2) * kPlaceBytes, bytes, path_);
  syncData(fd_, path_);
}

void CheckpointFile::create(const std::string& first) {
  auto fresh = path_ + ".new";
  KJ_SYSCALL(fd_ = ::open(fresh.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), fresh);
  std::string both(2 * kPlaceBytes, '\0');
  both.replace((sequence_ % 2) * kPlaceBytes, first.size(), first);
  writeAt(fd_, 0, both, fresh);
  syncData(fd_, fresh);
  KJ_SYSCALL(rename(fresh.c_str(), path_.c_str()), fresh);
  syncDirectory(directory_);
}

}  // namespace trainfs::mds
