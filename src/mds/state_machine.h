// apply(): the one way in which an MDT changes. Deterministic: it reads the transaction and the
// command and nothing else, so the leader, followers, replay and tests all get the same result.
#pragma once

#include "mds/command.h"
#include "mds/store.h"

namespace trainfs::mds {

// Applies one command inside `txn`; does not commit. A failed operation (outcome.error != 0)
// changes nothing but its slot. A repeated (session, slot, sequence) changes nothing and gives the
// stored outcome; an older sequence gives ESTALE with value 1 ("end this session"), an unknown
// session ESTALE.
Outcome apply(const Command& command, Txn& txn);

// Whether the command's slot knows it, or a later one: apply() would not execute it.
bool isRepeated(const Command& command, const View& view);

// The log index of the last command applied, and the latest time of any, which never goes back:
// belongs into the same transaction as the command's effect.
void setApplied(Txn& txn, uint64_t index, Time now);

// The content of a new MDT: root directory (mode 0755, owned by root; MDT0 only) and format
// version. Used by mkfs, on an empty store.
void format(Txn& txn, const std::string& fsname, uint16_t mdtIndex, Time now);

}  // namespace trainfs::mds
