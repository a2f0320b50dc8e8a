// What can be set about a running MDS: terms and limits. Defaults are those of the man page.
#pragma once

#include <kj/time.h>

#include <cstdint>
#include <functional>
#include <string>

#include "trainfs/space.h"

namespace trainfs::mds {

struct ServerOptions {
  // A client may rely on its caches this long after its last renewal, an OST on its session
  // answers.
  kj::Duration clientTerm = 10 * kj::SECONDS;
  kj::Duration ostTerm = 10 * kj::SECONDS;
  // A client that has not renewed for this long is evicted even if nobody wants what it holds.
  kj::Duration silenceMax = 60 * kj::SECONDS;
  // How long a question about a file waits for an OST that is away before the client is told to ask
  // again.
  kj::Duration patience = 20 * kj::SECONDS;
  // A client that has nothing open and has asked for nothing this long leaves the caches to
  // another.
  kj::Duration restAfter = 2 * kj::SECONDS;
  // Between attempts to reach an OST, and between looks at the terms.
  kj::Duration retryDelay = 500 * kj::MILLISECONDS;
  kj::Duration tick = 500 * kj::MILLISECONDS;

  // A user of the changelog that has more records to clear, or has cleared none of what is there
  // for so long, is deregistered.
  uint64_t changelogRecordsMax = 10'000'000;
  kj::Duration changelogIdleMax = 30 * kj::DAYS;
  kj::Duration changelogPause = 60 * kj::SECONDS;  // between looks at them

  // A connection is closed when its first message, or any further one, is not there in this time.
  kj::Duration greetingMax = 10 * kj::SECONDS;
  kj::Duration idleMax = 60 * kj::SECONDS;  // clientTerm if that is longer

  uint32_t connectionsMax = 1024;
  uint32_t sessionsMax = 4096;

  std::string targetUuid, address;                        // shown by status
  std::function<Space()> space = [] { return Space{}; };  // of the MDT; files: about
};

}  // namespace trainfs::mds
