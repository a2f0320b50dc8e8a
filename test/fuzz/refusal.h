// For targets whose decoders refuse by an exception of kj: that is an answer like any other, if it
// says something.
#pragma once

#include <kj/exception.h>

#include "target.h"

namespace trainfs::fuzz {

template <typename Decode>
void mayRefuse(Decode&& decode) {
  try {
    decode();
  } catch (const kj::Exception& refusal) {
    require(refusal.getDescription().size() > 0);
  }
}

}  // namespace trainfs::fuzz
