// What goes around every handler of the FUSE table: which one a request began in, for the
// statistics, and that the handler has returned, for Request.
#pragma once

#include "fuse_client/fuse_ops.h"
#include "fuse_client/statistics.h"

namespace trainfs::client {

// Wraps the handlers of the table, which must be complete. The table of the process: once.
void countRequests(fuse_lowlevel_ops& ops);

// What the handler that runs on this thread was called for.
RequestKind requestBeginning();

}  // namespace trainfs::client
