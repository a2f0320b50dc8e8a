// Everything of a serving MDS but its connections, wired together. Owned by the MDS event loop;
// shared by the RPC objects, so that a capability that outlives the server finds it stopped, not
// gone.
#pragma once

#include <kj/async.h>
#include <kj/timer.h>

#include "mds/changelog_service.h"
#include "mds/choices.h"
#include "mds/cluster_map.h"
#include "mds/ended_sessions.h"
#include "mds/glimpse.h"
#include "mds/lock_service.h"
#include "mds/names_in_flight.h"
#include "mds/operations.h"
#include "mds/own_commands.h"
#include "mds/reaper.h"
#include "mds/session_service.h"
#include "mds/session_table.h"
#include "mds/size_recovery.h"
#include "mds/statistics.h"
#include "mds/truncations.h"

namespace trainfs::mds {

class Core final : private kj::TaskSet::ErrorHandler {
 public:
  // The store, the log and the timer must stay until stop().
  Core(Store& store, Log& log, kj::Timer& timer, ServerOptions options);

  ~Core() noexcept(false) { stop(); }

  // Every call that came over RPC runs under this: after stop() it is rejected and touches nothing.
  template <typename T>
  kj::Promise<T> guard(kj::Promise<T> call) {
    return calls_.wrap(kj::mv(call));
  }
  void requireServing() const;
  void stop();

 private:
  void taskFailed(kj::Exception&& exception) override;

  Store& store_;
  kj::Timer& timer_;
  kj::Own<kj::TaskSet> tasks_;

 public:
  const ServerOptions options;
  const std::string fsname;
  const uint16_t mdtIndex;

  Statistics statistics;
  OstTable osts;
  SessionTable sessions;
  LockService locks;
  Choices choices;
  OwnCommands commands;
  NamesInFlight names;
  Glimpse glimpse;
  Truncations truncations;
  SizeRecovery recovery;
  Reaper reaper;
  EndedSessions ended;
  ChangelogService changelog;
  SessionService service;
  Operations operations;

 private:
  kj::Canceler calls_;
  bool stopped_ = false;
};

}  // namespace trainfs::mds
