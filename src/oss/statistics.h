// What a data worker counts. Written by that worker's thread, read by any.
#pragma once

#include <array>

#include "trainfs/bulk.h"
#include "trainfs/counters.h"

namespace trainfs::oss {

struct WorkerStatistics {
  struct Operation {
    LatencyHistogram latency;  // from the request's last byte to its reply, sending not included
    Counter errors;            // answered with an errno
    Counter refused;           // with another status: come again, stale session or chain, bad sum
  };
  static constexpr size_t kOperations = 8;
  std::array<Operation, kOperations> operations;  // by BulkOp
  Counter bytesRead, bytesWritten;

  // Once a second.
  Gauge connections, executing, dirtyObjects, openDescriptors;

  Operation& of(BulkOp op) { return operations[static_cast<size_t>(op) % kOperations]; }
};

}  // namespace trainfs::oss
