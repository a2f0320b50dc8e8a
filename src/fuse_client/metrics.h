// The figures of a mount for Prometheus. Any thread.
#pragma once

#include <string>

#include "fuse_client/inodes.h"
#include "fuse_client/statistics.h"
#include "trainfs/metrics.h"

namespace trainfs::client {

// Each figure is labelled with the place of the mount.
void fillMetrics(MetricsPage& page, const std::string& mountPoint, const Statistics& statistics,
                 const Inodes::Figures& inodes, bool mayCache);

}  // namespace trainfs::client
