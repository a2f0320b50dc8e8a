// Locks of files on the wire of the MDS, for both of its ends. Pure.
#pragma once

#include "mds.capnp.h"
#include "trainfs/file_lock.h"
#include "trainfs/result.h"

namespace trainfs {

void encodeLock(const FileLock& in, rpc::FileLock::Builder out);
Result<FileLock> decodeLock(rpc::FileLock::Reader in);  // EINVAL: no such kind or range

}  // namespace trainfs
