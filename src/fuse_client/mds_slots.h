// The slots of a session: each names one mutation in flight by (slot, sequence), so that the MDS
// executes it once however often it is sent. Some are set aside for what a recall waits on. Owned
// by the MDS thread.
#pragma once

#include <kj/async.h>

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "trainfs/types.h"

namespace trainfs::client {

class MdsSlots {
 public:
  static constexpr uint32_t kUrgentSlots = 16;

  MdsSlots();

  // A free slot, as soon as there is one.
  kj::Promise<uint16_t> take(bool urgent);
  void give(uint16_t slot);

  uint64_t nextSequence(uint16_t slot) { return ++sequences_[slot]; }
  // A new session counts from one again.
  void restart() { sequences_.fill(0); }

 private:
  struct Class {
    std::vector<uint16_t> free;
    std::deque<kj::Own<kj::PromiseFulfiller<uint16_t>>> waiting;
  };
  Class& classOf(bool urgent) { return urgent ? urgent_ : ordinary_; }

  Class ordinary_, urgent_;
  std::array<uint64_t, kSlotsPerSession> sequences_{};
};

}  // namespace trainfs::client
