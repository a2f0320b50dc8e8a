// What sessions that have ended still hold is released here, step by step and one session after the
// other, however much it is and however many have ended. Owned by the MDS event loop.
#pragma once

#include <kj/timer.h>

#include "mds/condition.h"
#include "mds/own_commands.h"
#include "mds/reaper.h"
#include "mds/store.h"

namespace trainfs::mds {

class EndedSessions {
 public:
  EndedSessions(Store& store, OwnCommands& commands, Reaper& reaper, kj::Timer& timer,
                const ServerOptions& options)
      : store_(store),
        commands_(commands),
        reaper_(reaper),
        timer_(timer),
        retryDelay_(options.clientTerm) {}

  // One may have ended with more than its end took away.
  void kick() { work_.notify(); }
  // Runs as long as the server does; begins with what an earlier run has left.
  kj::Promise<void> run();

 private:
  kj::Promise<void> releaseAll(SessionId session);

  Store& store_;
  OwnCommands& commands_;
  Reaper& reaper_;
  kj::Timer& timer_;
  const kj::Duration retryDelay_;
  Condition work_;
};

}  // namespace trainfs::mds
