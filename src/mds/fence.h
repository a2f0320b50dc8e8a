// Makes sure that no OST executes anything for a session any more. Owned by the MDS event loop.
#pragma once

#include <kj/timer.h>

#include "mds/cluster_map.h"

namespace trainfs::mds {

class Fence {
 public:
  Fence(OstTable& osts, kj::Timer& timer, const ServerOptions& options)
      : osts_(osts), timer_(timer), options_(options) {}

  // Resolves when every OST has acknowledged, or has lost its own lease and so executes nothing. An
  // OST that comes (back) later asks about each session anew, so the caller must have made
  // checkSession refuse first.
  kj::Promise<void> everywhere(SessionId session, uint32_t epoch);

 private:
  kj::Promise<void> at(uint32_t ost, SessionId session, uint32_t epoch);

  OstTable& osts_;
  kj::Timer& timer_;
  const ServerOptions& options_;
};

}  // namespace trainfs::mds
