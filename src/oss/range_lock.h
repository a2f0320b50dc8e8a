// Who may touch which blocks of one object, in order of arrival: readers share, a change is alone
// on its blocks, a sync goes along with readers but not with changes or another sync. Nobody
// overtakes an earlier one that he conflicts with, so requests take effect in the order in which
// they came. Belongs to one reactor. Bounded by the requests in flight.
#pragma once

#include <cstdint>
#include <list>

#include "oss/reactor.h"

namespace trainfs::oss {

struct BlockRange {
  uint64_t first = 0;
  uint64_t end = ~uint64_t{0};  // one past the last
};

class RangeLocks {
 public:
  enum class Mode : uint8_t { kRead, kSync, kChange };

  explicit RangeLocks(Reactor& reactor) : reactor_(reactor) {}
  RangeLocks(const RangeLocks&) = delete;

 private:
  struct Entry {
    Mode mode;
    BlockRange range;
    bool granted = false;
    std::coroutine_handle<> waiting = nullptr;
  };
  using Place = std::list<Entry>::iterator;

 public:
  // Holds until destroyed.
  class Hold {
   public:
    Hold(RangeLocks& locks, Place place) : locks_(&locks), place_(place) {}
    Hold(Hold&& other) noexcept
        : locks_(std::exchange(other.locks_, nullptr)), place_(other.place_) {}
    Hold& operator=(Hold&&) = delete;
    ~Hold() {
      if (locks_) locks_->release(place_);
    }

   private:
    RangeLocks* locks_;
    Place place_;
  };

  auto take(Mode mode, BlockRange range) {
    struct Awaiter {
      RangeLocks& locks;
      Place place;
      bool await_ready() const { return place->granted; }
      void await_suspend(std::coroutine_handle<> coroutine) { place->waiting = coroutine; }
      Hold await_resume() { return Hold(locks, place); }
    };
    return Awaiter{*this, enqueue(mode, range)};
  }

  bool idle() const { return entries_.empty(); }

 private:
  static bool conflict(const Entry& a, const Entry& b);
  Place enqueue(Mode mode, BlockRange range);
  void release(Place place);
  bool mayGo(Place place);

  Reactor& reactor_;
  std::list<Entry> entries_;
};

}  // namespace trainfs::oss
