// The figures of this process for Prometheus. Any thread.
#pragma once

#include "mds/server.h"
#include "trainfs/metrics.h"

namespace trainfs::mds {

void fillMetrics(MetricsPage& page, const Statistics& statistics, const Space& space);

}  // namespace trainfs::mds
