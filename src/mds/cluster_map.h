// The OSTs of the cluster: who they are (from the store), whether they serve (from their leases),
// and how to reach them. Makes the cluster map that clients see and the space figures that
// placement works with. Owned by the MDS event loop.
#pragma once

#include <capnp/rpc-twoparty.h>
#include <kj/time.h>
#include <kj/timer.h>

#include <functional>
#include <map>
#include <vector>

#include "mds/condition.h"
#include "mds/namespace.h"
#include "mds/options.h"
#include "oss.capnp.h"
#include "striping/placement.h"
#include "trainfs/cluster_map.h"
#include "trainfs/space.h"

namespace trainfs::mds {

struct Ost {
  OstRecord record;
  Space space;
  bool active = false;
  bool awaited = false;  // known from the store, not back yet, and not given up
  kj::Maybe<rpc::OssControl::Client> control;  // there while the OST is active
  // Until then the OST may go on serving the sessions that it knows, whether we reach it or not.
  kj::TimePoint leaseUntil = kj::origin<kj::TimePoint>();
  uint64_t registration = 0;  // which of its registrations is the valid one
};

class OstTable {
 public:
  // Every OST in the store may still hold a lease of this server's former run.
  OstTable(const View& view, kj::Timer& timer, const ServerOptions& options);

  // A registration that is in the store now. Returns its number, which renew and lost have to give.
  uint64_t registered(OstRecord record, rpc::OssControl::Client control, Space space);
  // False: this registration is over, the OST must register again.
  bool renew(uint32_t index, uint64_t registration, Space space);
  void lost(uint32_t index, uint64_t registration, const char* why);
  // Takes leases that ran out.
  void expire();

  const Ost* find(uint32_t index) const;
  // This very target is registered at another place, and may be served there until its lease is
  // over: two copies of one target must never serve at the same time.
  bool servedElsewhere(const OstRecord& record) const;
  // Nothing while the OST is away.
  kj::Maybe<rpc::OssControl::Client> control(uint32_t index);
  const std::map<uint32_t, Ost>& all() const { return osts_; }

  uint64_t version() const { return version_; }
  ClusterMap map() const;
  std::vector<striping::OstSpace> space() const;
  // Placement should wait for changed() and look again: no OST serves, or one that this server's
  // former run knew has not come back yet and still may within a lease term. Without waiting, files
  // made right after a restart would crowd onto the first OST that is back, or be told ENOSPC.
  bool settling() const;

  // After every new map version.
  void onChange(std::function<void()> changed) { onChange_ = std::move(changed); }
  kj::Promise<void> changed() { return changed_.wait(); }

 private:
  void deactivate(Ost& ost, const char* why);
  void newVersion();

  kj::Timer& timer_;
  const kj::Duration term_;
  std::string fsname_;
  std::map<uint32_t, Ost> osts_;
  // Starts at the wall clock's microseconds, so that it grows over restarts without being stored:
  // changes are rarer than one per microsecond.
  uint64_t version_;
  uint64_t registrations_ = 0;
  std::function<void()> onChange_ = [] {};
  Condition changed_;
};

// Lustre's name, for messages: "trainfs-OST0003".
std::string ostName(const std::string& fsname, uint32_t index);

}  // namespace trainfs::mds
