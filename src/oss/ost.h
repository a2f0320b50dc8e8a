// One OST of this process: what its control and the data workers share about it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "oss/lease.h"
#include "oss/object_index.h"
#include "trainfs/target.h"

namespace trainfs::oss {

struct Ost {
  Target target;
  std::string name;       // "trainfs-OST0003"
  std::string directory;  // of the target
  std::unique_ptr<ObjectIndex> index;

  // Written by the control thread.
  std::atomic<uint32_t> chainVersion{0};
  Lease lease;

  // Some object may be dirty that no worker's cleaner knows of, or can make clean.
  std::atomic<bool> unclean{false};
  std::atomic<uint64_t> leftovers{0};  // about: see Leftovers
};

}  // namespace trainfs::oss
