#include "lock_wire.h"

namespace trainfs {

void encodeLock(const FileLock& in, rpc::FileLock::Builder out) {
  out.setInode(in.inode.value);
  out.setKind(static_cast<rpc::LockKind>(in.kind));
  out.setOwner(in.owner);
  out.setExclusive(in.mode == LockMode::kExclusive);
  out.setFirst(in.range.first);
  out.setLast(in.range.last);
  out.setProcess(in.process);
}

Result<FileLock> decodeLock(rpc::FileLock::Reader in) {
  FileLock lock{.inode = {in.getInode()},
                .kind = static_cast<LockKind>(in.getKind()),
                .owner = in.getOwner(),
                .range = {in.getFirst(), in.getLast()},
                .mode = in.getExclusive() ? LockMode::kExclusive : LockMode::kShared,
                .process = in.getProcess()};
  bool whole = lock.kind != LockKind::kRecord;
  if (lock.kind > LockKind::kAppend || !lock.range.valid() || (whole && lock.range != LockRange{}))
    return Errno(EINVAL);
  return lock;
}

}  // namespace trainfs
