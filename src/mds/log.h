// The log: commands become durable, then applied, in order; replies leave afterwards.
// This interface is what replication will implement; today LmdbLog makes each batch one LMDB
// commit.
#pragma once

#include <kj/async.h>

#include <memory>

#include "mds/command.h"
#include "mds/store.h"

namespace trainfs::mds {

class Log {
 public:
  virtual ~Log() noexcept(false) = default;
  // Resolves on the calling event loop when the command is durable and applied. Commands are
  // applied in the order of the calls. Rejects when the log refuses (shutting down, too many
  // waiting, disk failed). Must be called from the loop that the log was made on.
  virtual kj::Promise<Outcome> append(Command command) = 0;
};

}  // namespace trainfs::mds
