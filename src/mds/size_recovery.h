// Takes over the sizes of files whose writer went without a last report. Such files carry the write
// mark of kMdsItself, which survives restarts; as long as they have it, every question about them
// is a glimpse. Owned by the MDS event loop.
#pragma once

#include <kj/async.h>

#include "mds/glimpse.h"
#include "mds/own_commands.h"
#include "mds/store.h"
#include "mds/truncations.h"

namespace trainfs::mds {

// Files asked about at the same time.
inline constexpr size_t kRecoveriesAtOnce = 16;

class SizeRecovery {
 public:
  SizeRecovery(Store& store, OwnCommands& commands, Glimpse& glimpse, Truncations& truncations,
               kj::Timer& timer, const ServerOptions& options);

  // Hands all files that the session has marked over to kMdsItself: durable when it resolves.
  kj::Promise<void> takeOver(SessionId session);
  kj::Promise<void> takeOver(std::vector<InodeId> files);

  // There are files with the mark of kMdsItself.
  void kick();

  // Runs as long as the server does.
  kj::Promise<void> run();
  bool pending() const { return pending_; }

 private:
  kj::Promise<bool> recover(InodeId inode);

  Store& store_;
  OwnCommands& commands_;
  Glimpse& glimpse_;
  Truncations& truncations_;
  kj::Timer& timer_;
  const kj::Duration retryDelay_;
  bool pending_ = true;  // until run() has looked
  Condition work_;
};

}  // namespace trainfs::mds
