// The figures of this process for Prometheus. Any thread.
#pragma once

#include <memory>
#include <span>

#include "oss/data_worker.h"
#include "trainfs/metrics.h"

namespace trainfs::oss {

void fillMetrics(MetricsPage& page, std::span<const std::unique_ptr<Ost>> osts,
                 std::span<const std::unique_ptr<WorkerThread>> workers);

}  // namespace trainfs::oss
