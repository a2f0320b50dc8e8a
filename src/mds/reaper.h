// Destroys the objects of files that are gone, then forgets the record that says so.
// Works through the garbage records of the store, round by round, one round at a time: that bounds
// its rate and its memory. Owned by the MDS event loop.
#pragma once

#include <kj/timer.h>

#include <map>
#include <optional>
#include <vector>

#include "mds/cluster_map.h"
#include "mds/own_commands.h"
#include "mds/store.h"

namespace trainfs::mds {

inline constexpr size_t kReapFilesPerRound = 256;
// Objects in one call to an OST; a round's share of one OST goes in several calls, one after the
// other.
inline constexpr size_t kReapObjectsPerCall = 1024;
inline constexpr kj::Duration kDestroyTimeout = 60 * kj::SECONDS;
inline constexpr kj::Duration kReapBackoffMax = 30 * kj::SECONDS;

class Reaper {
 public:
  Reaper(Store& store, OwnCommands& commands, OstTable& osts, kj::Timer& timer,
         const ServerOptions& options)
      : store_(store), commands_(commands), osts_(osts), timer_(timer), options_(options) {}

  // A commit may have made garbage.
  void kick();
  // Runs as long as the server does.
  kj::Promise<void> run();

 private:
  // Over all records, so that files of an OST that is away hide none behind them.
  struct Lap {
    bool reaped = false, left = false;  // some were
  };
  kj::Promise<Lap> goOverAll();

  struct Round {
    std::vector<Garbage> files;                       // whose OSTs are all there
    std::map<uint32_t, std::vector<ObjectId>> byOst;  // their objects
    bool postponed = false;                           // others wait for an OST
  };
  Round plan(std::optional<Garbage>& last);
  kj::Promise<bool> reap(Round round);
  kj::Promise<bool> destroyOn(uint32_t ost, std::vector<ObjectId> objects);
  kj::Promise<void> destroy(rpc::OssControl::Client control, const std::vector<ObjectId>& objects);

  Store& store_;
  OwnCommands& commands_;
  OstTable& osts_;
  kj::Timer& timer_;
  const ServerOptions& options_;
  bool kicked_ = false;  // since the lap began
  Condition work_;
};

}  // namespace trainfs::mds
