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

// The first command takes the session away, and with it every way back; what it held goes in steps,
// this one and, as long as the outcome's value is 1, further ones. Its marks are no loss by then:
// the MDS itself has the same.
Result<Outcome> run(const EndSessionOp& op, const Command&, Txn& txn) {
  if (op.session.value == 0) return Outcome{};  // the MDS itself
  if (txn.get(sessionKey(op.session))) {
    for (const auto& key : keysOf(txn, slotsPrefix(op.session))) txn.erase(key);
    txn.erase(sessionKey(op.session));
    txn.put(kEpochKey, encodeNumber(counter(txn, kEpochKey) + 1));
  }
  size_t most = kHoldsEndedAtOnce;
  for (auto relation : {Relation::kWriter, Relation::kOrphan}) {
    auto held = inodesOf(txn, relation, op.session, most);
    for (InodeId inode : held) releaseHold(txn, op.session, inode);
    most -= held.size();
  }
  bool more = !inodesOf(txn, Relation::kWriter, op.session, 1).empty() ||
              !inodesOf(txn, Relation::kOrphan, op.session, 1).empty();
  return Outcome{.value = more};
}

}  // namespace trainfs::mds
