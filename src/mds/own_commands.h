// Commands that the MDS gives by itself, or for a session without a slot: idempotent by nature, so
// a log that has no room is simply asked again. Owned by the MDS event loop.
#pragma once

#include <kj/timer.h>

#include "mds/choices.h"
#include "mds/log.h"
#include "mds/options.h"

namespace trainfs::mds {

inline constexpr size_t kOwnCommandsAtOnce = 256;

class OwnCommands {
 public:
  OwnCommands(Log& log, Choices& choices, kj::Timer& timer, const ServerOptions& options)
      : log_(log), choices_(choices), timer_(timer), retryDelay_(options.retryDelay) {}

  kj::Promise<Outcome> run(Operation op, SessionId session = kMdsItself);
  // All of them, kOwnCommandsAtOnce at a time. The outcomes do not matter.
  kj::Promise<void> runAll(std::vector<Operation> ops, SessionId session = kMdsItself);

 private:
  Log& log_;
  Choices& choices_;
  kj::Timer& timer_;
  const kj::Duration retryDelay_;
};

}  // namespace trainfs::mds
