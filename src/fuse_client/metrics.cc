#include "fuse_client/metrics.h"

#include <algorithm>

namespace trainfs::client {

namespace {

// The bounds of a timer are every power of two of microseconds, those of the page every second one
// of them from 16 on.
MetricsPage::Buckets bucketsOf(const Timer& timer) {
  MetricsPage::Buckets buckets{};
  for (size_t i = 0; i < Timer::kBuckets; ++i) {
    size_t bucket = i <= 4 ? 0 : (i - 3) / 2;
    buckets[std::min(bucket, buckets.size() - 1)] +=
        timer.buckets[i].load(std::memory_order_relaxed);
  }
  return buckets;
}

}  // namespace

void fillMetrics(MetricsPage& page, const std::string& mountPoint, const Statistics& statistics,
                 const Inodes::Figures& inodes, bool mayCache) {
  const MetricsPage::Labels mount{{"mount", mountPoint}};
  auto timer = [&](const std::string& name, const char* help, const char* kind,
                   std::string_view which, const Timer& timer) {
    auto labels = mount;
    labels[kind] = which;
    page.histogram(name + "_seconds", help, labels, bucketsOf(timer),
                   std::chrono::nanoseconds(timer.nanoseconds.load()));
    page.counter(name + "_errors_total", "Those that ended with an error.", labels,
                 timer.errors.load());
  };
  for (size_t i = 0; i < kRequestKinds; ++i)
    timer("trainfs_client_request", "Requests of the kernel, by how long they took.", "request",
          kRequestNames[i], statistics.requests[i]);
  constexpr const char* kCallsHelp = "Calls to the MDS, by how long they took.";
  timer("trainfs_client_mds_call", kCallsHelp, "kind", "question", statistics.mdsQuestions);
  timer("trainfs_client_mds_call", kCallsHelp, "kind", "change", statistics.mdsChanges);

  auto counter = [&](const char* name, const char* help, uint64_t value) {
    page.counter(name, help, mount, value);
  };
  auto gauge = [&](const char* name, const char* help, size_t value) {
    page.gauge(name, help, mount, static_cast<double>(value));
  };
  counter("trainfs_client_read_bytes_total", "Read by the kernel; not what its cache had.",
          statistics.bytesRead);
  counter("trainfs_client_written_bytes_total", "Written by the kernel.", statistics.bytesWritten);
  counter("trainfs_client_mds_connections_total", "Times that a session was opened or resumed.",
          statistics.mdsConnections);
  counter("trainfs_client_mds_resent_total", "Calls to the MDS that were sent again.",
          statistics.mdsResent);
  counter("trainfs_client_ost_requests_total", "Requests to OSTs.", statistics.dataFrames);
  counter("trainfs_client_ost_resent_total", "Requests to OSTs that were sent again.",
          statistics.dataRerouted);
  gauge("trainfs_client_may_cache",
        "1 while no other client is at work, and this one may rely on its caches.", mayCache);
  gauge("trainfs_client_inodes", "Inodes that the kernel or this client remembers.", inodes.known);
  gauge("trainfs_client_open_files", "Files and directories that are open.", inodes.open);
  gauge("trainfs_client_unreported_files", "Files with changes that the MDS was not told yet.",
        inodes.unreported);
}

}  // namespace trainfs::client
