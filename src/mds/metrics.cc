#include "mds/metrics.h"

#include <capnp/schema.h>

#include "mds.capnp.h"

namespace trainfs::mds {

void fillMetrics(MetricsPage& page, const Statistics& statistics, const Space& space) {
  constexpr const char* kCalls = "trainfs_mds_request_seconds";
  constexpr const char* kCallsHelp = "Requests of clients, by how long they took.";
  for (size_t i = 0; i < statistics.calls.size(); ++i)
    page.histogram(kCalls, kCallsHelp, {{"call", kCallNames[i]}}, statistics.calls[i]);
  auto kinds = capnp::Schema::from<rpc::Operation>().getUnionFields();
  for (kj::uint i = 0; i < kinds.size() && i < Statistics::kChangesMax; ++i)
    page.histogram("trainfs_mds_change_seconds",
                   "Changes of the name space, by how long they took until they were durable.",
                   {{"change", kinds[i].getProto().getName().cStr()}}, statistics.changes[i]);
  auto gauge = [&](const char* name, const char* help, double value) {
    page.gauge(name, help, {}, value);
  };
  auto number = [](const Gauge& value) { return static_cast<double>(value.value()); };
  gauge("trainfs_mds_sessions", "Sessions of clients.", number(statistics.sessions));
  gauge("trainfs_mds_connections", "Connections of clients, OSTs and tools.",
        number(statistics.connections));
  gauge("trainfs_mds_requests_executing", "Requests that are worked on, or wait.",
        number(statistics.executing));
  gauge("trainfs_mds_locks", "Ranges of files that are locked (flock, fcntl).",
        number(statistics.locks));
  gauge("trainfs_mds_lock_waits", "Requests that wait for a lock.", number(statistics.lockWaits));
  gauge("trainfs_mds_osts", "OSTs of the cluster map.", number(statistics.osts));
  gauge("trainfs_mds_osts_serving", "OSTs that serve.", number(statistics.ostsServing));
  gauge("trainfs_mdt_capacity_bytes", "Size of the MDT's file system.",
        static_cast<double>(space.totalBytes));
  gauge("trainfs_mdt_available_bytes", "What is left of it.",
        static_cast<double>(space.availableBytes));
  gauge("trainfs_mdt_inodes_free", "Files that there is room for, about.",
        static_cast<double>(space.freeFiles));
}

}  // namespace trainfs::mds
