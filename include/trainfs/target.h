// What mkfs.trainfs writes into a target's directory and the servers read back: DIR/trainfs-target.toml.
// Format: docs/format-target.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainfs {

inline constexpr uint32_t kTargetVersion = 1;
inline constexpr const char* kTargetFile = "trainfs-target.toml";

struct Target {
  enum class Kind { kMdt, kOst };
  Kind kind = Kind::kOst;
  std::string fsname;     // 1..8 characters, letters, digits, '_' and '-', as Lustre
  uint32_t index = 0;     // MDT 0..65535, OST 0..65534
  std::string uuid;       // random, made by mkfs
  bool mgs = false;       // this MDT holds the cluster map
  std::vector<std::string> mgsNodes;  // HOST[:PORT], for OSTs
};

// Lustre's name of a target: "trainfs-OST0003", "trainfs-MDT0000".
std::string targetName(const Target& target);

// Both say in words what is wrong (file and key); empty string: fine. load checks the version and all limits.
std::string loadTarget(const std::string& directory, Target& target);
std::string saveTarget(const std::string& directory, const Target& target);  // durable when it returns

}  // namespace trainfs
