// Sessions begin and end. Their numbers are counted, never reused; the epoch grows whenever one
// ends, so that an OSS can tell a fenced session from a later one.
#include "mds/inodes.h"
#include "mds/keys.h"
#include "mds/op_run.h"
#include "mds/records.h"

namespace trainfs::mds {
namespace {

uint64_t counter(const View& view, std::string_view key) {
  auto bytes = view.get(key);
  return bytes ? decodeNumber(key, *bytes) : 1;
}

}  // namespace

Result<Outcome> run(const OpenSessionOp& op, const Command&, Txn& txn) {
  if (op.clientName.size() > kClientNameBytesMax) return Errno(EINVAL);
  SessionId id{counter(txn, kNextSessionKey)};
  auto epoch = static_cast<uint32_t>(counter(txn, kEpochKey));
  txn.put(sessionKey(id), encodeSession({.id = id, .epoch = epoch, .clientName = op.clientName}));
  txn.put(kNextSessionKey, encodeNumber(id.value + 1));
  return Outcome{.value = id.value};
}

Result<Outcome> run(const EndSessionOp& op, const Command&, Txn& txn) {
  if (!txn.get(sessionKey(op.session))) return Outcome{};  // ended already
  for (InodeId inode : inodesOf(txn, Relation::kWriter, op.session))
    unrelate(txn, Relation::kWriter, op.session, inode);
  for (InodeId inode : inodesOf(txn, Relation::kOrphan, op.session))
    releaseHold(txn, op.session, inode);
  for (const auto& key : keysOf(txn, slotsPrefix(op.session))) txn.erase(key);
  txn.erase(sessionKey(op.session));
  txn.put(kEpochKey, encodeNumber(counter(txn, kEpochKey) + 1));
  return Outcome{};
}

}  // namespace trainfs::mds
