#include "oss/metrics.h"

#include "trainfs/space.h"

namespace trainfs::oss {

namespace {

constexpr std::pair<BulkOp, const char*> kOperations[] = {{BulkOp::kRead, "read"},
                                                          {BulkOp::kWrite, "write"},
                                                          {BulkOp::kPunch, "punch"},
                                                          {BulkOp::kSync, "sync"},
                                                          {BulkOp::kStat, "stat"}};

void fillOst(MetricsPage& page, const Ost& ost) {
  MetricsPage::Labels labels{{"ost", ost.name}};
  page.gauge("trainfs_ost_serving", "1 while the OST has a lease of the MDS.", labels,
             ost.lease.holds());
  page.counter("trainfs_ost_registrations_total", "Registrations with an MDS.", labels,
               ost.lease.registration());
  page.gauge("trainfs_ost_leftover_objects",
             "Objects of a server that did not stop in order, still to be made clean.", labels,
             static_cast<double>(ost.leftovers));
  auto space = spaceOf(ost.directory);
  if (!space) return;
  page.gauge("trainfs_ost_capacity_bytes", "Size of the OST's file system.", labels,
             static_cast<double>(space->totalBytes));
  page.gauge("trainfs_ost_available_bytes", "What is left for objects.", labels,
             static_cast<double>(space->availableBytes));
  page.gauge("trainfs_ost_files_free", "Objects that can still be made.", labels,
             static_cast<double>(space->freeFiles));
}

void fillWorker(MetricsPage& page, const std::string& number, const WorkerStatistics& figures) {
  for (auto& [op, name] : kOperations) {
    MetricsPage::Labels labels{{"worker", number}, {"op", name}};
    auto& operation = figures.operations[static_cast<size_t>(op)];
    page.histogram("trainfs_oss_request_seconds", "Requests executed, by how long it took.", labels,
                   operation.latency);
    page.counter("trainfs_oss_request_errors_total", "Requests answered with an error.", labels,
                 operation.errors.value());
    page.counter("trainfs_oss_requests_refused_total",
                 "Requests sent back: lease, session, chain or a sum was not right.", labels,
                 operation.refused.value());
  }
  MetricsPage::Labels labels{{"worker", number}};
  page.counter("trainfs_oss_read_bytes_total", "Data sent to clients.", labels,
               figures.bytesRead.value());
  page.counter("trainfs_oss_written_bytes_total", "Data received from clients.", labels,
               figures.bytesWritten.value());
  page.gauge("trainfs_oss_connections", "Connections of clients.", labels,
             static_cast<double>(figures.connections.value()));
  page.gauge("trainfs_oss_requests_executing", "Requests being executed, and waiting for others.",
             labels, static_cast<double>(figures.executing.value()));
  page.gauge("trainfs_oss_dirty_objects", "Objects that would be summed anew after a crash.",
             labels, static_cast<double>(figures.dirtyObjects.value()));
  page.gauge("trainfs_oss_open_descriptors", "Files of objects that are open.", labels,
             static_cast<double>(figures.openDescriptors.value()));
}

}  // namespace

void fillMetrics(MetricsPage& page, std::span<const std::unique_ptr<Ost>> osts,
                 std::span<const std::unique_ptr<WorkerThread>> workers) {
  for (auto& ost : osts) fillOst(page, *ost);
  for (size_t i = 0; i < workers.size(); ++i)
    fillWorker(page, std::to_string(i), workers[i]->statistics());
}

}  // namespace trainfs::oss
