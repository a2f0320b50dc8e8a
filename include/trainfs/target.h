// What mkfs.trainfs writes into a target's directory and the servers read back:
// DIR/trainfs-target.toml. Format: docs/format-target.md.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace trainfs {

inline constexpr uint32_t kTargetVersion = 1;
inline constexpr uint32_t kMdtIndexMax = 65535;
inline constexpr uint32_t kOstIndexMax = 65534;
inline constexpr size_t kFsnameBytesMax = 8;
inline constexpr size_t kMgsNodesMax = 64;
inline constexpr const char* kTargetFile = "trainfs-target.toml";
// What saveTarget writes before it becomes kTargetFile; without that one beside it, a format that
// did not finish.
inline constexpr const char* kTargetDraftFile = "trainfs-target.toml.new";

struct Target {
  enum class Kind { kMdt, kOst };
  Kind kind = Kind::kOst;
  std::string fsname;                 // 1..8 characters, letters, digits, '_' and '-', as Lustre
  uint32_t index = 0;                 // MDT 0..65535, OST 0..65534
  std::string uuid;                   // random, made by mkfs
  bool mgs = false;                   // this MDT holds the cluster map
  std::vector<std::string> mgsNodes;  // HOST[:PORT], for OSTs
};

// Lustre's name of a target: "trainfs-OST0003", "trainfs-MDT0000".
std::string targetName(const Target& target);

// Both say in words what is wrong (file and key); empty string: fine. load checks the version and
// all limits.
std::string loadTarget(const std::string& directory, Target& target);
std::string saveTarget(const std::string& directory,
                       const Target& target);  // durable when it returns

// The file's content, without the file. decode says what is wrong as load does, with `path` in
// front.
std::string decodeTarget(const std::string& content, const std::string& path, Target& target);
std::string encodeTarget(const Target& target);

// What is wrong with the values; empty string: fine.
std::string checkTarget(const Target& target);

// Whoever works on a target holds its lock, a flock on the directory: a server as long as it runs,
// mkfs while it formats. The kernel drops it with the process, so a crash leaves nothing behind.
class TargetLock {
 public:
  TargetLock() = default;
  TargetLock(TargetLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  TargetLock& operator=(TargetLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~TargetLock();
  int fd() const { return fd_; }  // of the directory; -1: not held

 private:
  friend std::string lockTarget(const std::string& directory, TargetLock& lock);
  int fd_ = -1;
};

// Takes the lock without waiting. Says in words what is wrong ("in use by another process"); empty:
// `lock` holds.
std::string lockTarget(const std::string& directory, TargetLock& lock);

}  // namespace trainfs
