// The cluster map as plain values: which OSTs there are, and where. Made by MDT0, versioned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainfs {

inline constexpr size_t kOstPortsMax = 16;  // so an OSS has no more data workers

struct OstAddress {
  uint32_t index = 0;
  std::string uuid;
  std::string host;             // numeric address or name
  std::vector<uint16_t> ports;  // 1 to kOstPortsMax, one per data worker; see workerOf() in bulk.h
  uint32_t chainVersion = 0;    // of the chain of this one OST
  bool active = false;
  friend bool operator==(const OstAddress&, const OstAddress&) = default;
};

struct ClusterMap {
  uint64_t version = 0;
  std::string fsname;
  std::vector<OstAddress> osts;  // by index, ascending
  const OstAddress* find(uint32_t index) const {
    for (auto& ost : osts)
      if (ost.index == index) return &ost;
    return nullptr;
  }
};

}  // namespace trainfs
