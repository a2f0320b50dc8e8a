// The changelog's users, as a running MDS looks after them: what everybody has cleared is erased
// step by step, and who has fallen too far behind, or has not been heard of for too long, is
// deregistered so that a forgotten program cannot fill the MDT. Owned by the MDS event loop.
#pragma once

#include <kj/timer.h>

#include "mds/changelog.h"
#include "mds/condition.h"
#include "mds/options.h"
#include "mds/own_commands.h"
#include "mds/store.h"

namespace trainfs::mds {

class ChangelogService {
 public:
  ChangelogService(Store& store, OwnCommands& commands, Choices& choices, kj::Timer& timer,
                   const ServerOptions& options)
      : store_(store),
        commands_(commands),
        choices_(choices),
        timer_(timer),
        recordsMax_(options.changelogRecordsMax),
        idleMax_(options.changelogIdleMax),
        pause_(options.changelogPause) {}

  struct Changes {
    std::vector<ChangeRecord> changes;
    uint64_t last = 0;
  };
  Changes read(uint64_t first, uint32_t most);
  struct Users {
    std::vector<ChangelogUser> users;
    uint64_t last = 0;
  };
  Users users();

  // Errors: those of the operations, op_changelog.cc.
  kj::Promise<Result<uint32_t>> add(std::string name);
  kj::Promise<Status> remove(uint32_t user);
  kj::Promise<Status> clear(uint32_t user, uint64_t upTo);

  // Runs as long as the server does; begins with what an earlier run has left.
  kj::Promise<void> run();

 private:
  kj::Promise<void> trim();
  kj::Promise<void> removeLaggards();

  Store& store_;
  OwnCommands& commands_;
  Choices& choices_;
  kj::Timer& timer_;
  const uint64_t recordsMax_;
  const kj::Duration idleMax_;
  const kj::Duration pause_;
  Condition cleared_;
};

}  // namespace trainfs::mds
