#include "mds/state_machine.h"

#include <kj/debug.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "mds/inodes.h"
#include "mds/keys.h"
#include "mds/namespace.h"
#include "mds/op_run.h"
#include "mds/records.h"
#include "trainfs/codec.h"

namespace trainfs::mds {
namespace {

constexpr uint64_t kEndThisSession = 1;  // Outcome::value beside ESTALE

// What the slot says about a request that names it; nothing: execute it.
std::optional<Outcome> replay(const Command& command, const View& view) {
  auto bytes = view.get(slotKey(command.session, command.slot));
  if (!bytes) return std::nullopt;
  auto done = decodeSlot(*bytes);
  if (command.sequence > done.sequence) return std::nullopt;
  if (command.sequence == done.sequence) return done.outcome;
  return Outcome{.error = ESTALE, .value = kEndThisSession};
}

Outcome execute(const Command& command, Txn& txn) {
  auto result = std::visit([&](const auto& op) { return run(op, command, txn); }, command.op);
  return result ? *result : Outcome{.error = result.error().code()};
}

InodeRecord newRoot(uint64_t hashSeed, Time now) {
  InodeRecord root;
  root.attributes.inode = kRootInode;
  root.attributes.mode = S_IFDIR | 0755;
  root.attributes.links = 2;
  root.attributes.sizeBytes = root.attributes.usedBytes = kDirectoryBytes;
  root.attributes.atime = root.attributes.mtime = root.attributes.ctime = root.attributes.btime =
      now;
  root.parent = kRootInode;
  root.hashSeed = hashSeed;
  return root;
}

}  // namespace

Outcome apply(const Command& command, Txn& txn) {
  bool ofSession = command.session.value != 0;
  if (ofSession && !txn.get(sessionKey(command.session))) return {.error = ESTALE};
  if (!ofSession || command.slot == kNoSlot) return execute(command, txn);

  if (command.slot >= kSlotsPerSession) return {.error = EINVAL};
  if (auto done = replay(command, txn)) return *done;
  auto outcome = execute(command, txn);
  // A session that has just ended itself keeps no replies.
  if (txn.get(sessionKey(command.session)))
    txn.put(slotKey(command.session, command.slot), encodeSlot({command.sequence, outcome}));
  return outcome;
}

bool isRepeated(const Command& command, const View& view) {
  return command.session.value != 0 && command.slot < kSlotsPerSession &&
         replay(command, view).has_value();
}

void setApplied(Txn& txn, uint64_t index, Time now) {
  txn.put(kAppliedKey, encodeNumber(index));
  if (!txn.get(kClockKey) || lastCommandTime(txn) < now) txn.put(kClockKey, encodeTime(now));
}

void format(Txn& txn, const std::string& fsname, uint16_t mdtIndex, Time now) {
  KJ_REQUIRE(!txn.get(kFormatVersionKey).has_value(), "this metadata store is formatted already");
  txn.put(kFormatVersionKey, encodeNumber(kFormatVersion));
  txn.put(kFsnameKey, fsname);
  txn.put(kMdtIndexKey, encodeNumber(mdtIndex));
  InodeId next{(uint64_t{mdtIndex} << 48) + kRootInode.value + 1};
  txn.put(kNextInodeKey, encodeNumber(next.value));
  txn.put(kNextSessionKey, encodeNumber(1));
  txn.put(kEpochKey, encodeNumber(1));
  setApplied(txn, 0, now);
  if (mdtIndex != 0) return;
  auto seed = Writer().putString(fsname).put(now.seconds).put(now.nanoseconds).take();
  putInode(txn, newRoot(XXH3_64bits(seed.data(), seed.size()), now));
}

}  // namespace trainfs::mds
