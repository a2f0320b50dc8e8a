// The table of FUSE handlers. Each decodes a request, hands it on and returns; nothing here waits
// for a server. With fuse_request and kernel_mount the only files that know libfuse.
#pragma once

#define FUSE_USE_VERSION 318
#include <fuse_lowlevel.h>

namespace trainfs::client {

fuse_lowlevel_ops fuseOps();

// The parts of the table, one per file.
void addMetaOps(fuse_lowlevel_ops& ops);  // names and attributes
void addXattrOps(fuse_lowlevel_ops& ops);
void addDirOps(fuse_lowlevel_ops& ops);
void addFileOps(fuse_lowlevel_ops& ops);
void addLockOps(fuse_lowlevel_ops& ops);
void addControlOps(fuse_lowlevel_ops& ops);

}  // namespace trainfs::client
