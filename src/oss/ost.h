// One OST of this process: what its control and the data workers share about it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "oss/object_index.h"
#include "trainfs/target.h"

namespace trainfs::oss {

struct Ost {
  Target target;
  std::string name;       // "trainfs-OST0003"
  std::string directory;  // of the target
  std::unique_ptr<ObjectIndex> index;

  // Written by the control thread. A data worker that reads them a moment too early acts as if the
  // request had come a moment earlier; the lease ends early enough for that (Control).
  std::atomic<uint32_t> registration{0};  // counts registrations with the MDS; 0: none yet
  std::atomic<uint32_t> chainVersion{0};
  std::atomic<int64_t> leaseEnd{0};  // steady_clock ticks

  void extendLease(std::chrono::steady_clock::time_point end) {
    leaseEnd = end.time_since_epoch().count();
  }
  bool mayServe() const {
    auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    return registration != 0 && now < leaseEnd;
  }
};

}  // namespace trainfs::oss
