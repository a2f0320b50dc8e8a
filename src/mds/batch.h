// Commands applied together, in one transaction of the store. Used by the log as commands come and
// by recovery as it reads them again: what is done must be the same both times.
#pragma once

#include <kj/exception.h>

#include <cstdint>
#include <vector>

#include "mds/command.h"
#include "mds/store.h"

namespace trainfs::mds {

struct Applied {
  Outcome outcome;
  kj::Maybe<kj::Exception> failure;  // apply() threw: the command has no effect
};

// Applies commands with the indexes from `firstIndex` on, notes the last one as applied, and
// commits. Throws kj::Exception: of type OVERLOADED when the store is full, nothing has changed
// then; any other, and the disk refused.
std::vector<Applied> applyBatch(Store& store, const std::vector<const Command*>& commands,
                                uint64_t firstIndex);

}  // namespace trainfs::mds
