// Until when an OST may be used, by this machine's clock: so long the MDS counts on it. Begun with
// each registration and extended by the control thread; a data worker that reads it a moment too
// early acts as if its request had come a moment earlier, and the lease ends early enough for that
// (Control::endOfLease).
//
// Once a lease has run out the MDS may have evicted sessions without this OST. So a request counts
// only in the registration in which its session was verified, whatever lease holds later.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace trainfs::oss {

class Lease {
 public:
  using Instant = std::chrono::steady_clock::time_point;
  // A new registration, before the lease that comes with it.
  void begin(Instant end) {
    ++registration_;
    extendTo(end);
  }
  void extendTo(Instant end) { end_ = end.time_since_epoch().count(); }

  // Counts registrations with the MDS; 0: none yet.
  uint32_t registration() const { return registration_; }
  bool holds() const { return std::chrono::steady_clock::now().time_since_epoch().count() < end_; }
  // In this order: it must not be the next registration's lease that holds.
  bool holdsIn(uint32_t registration) const { return holds() && registration_ == registration; }

 private:
  std::atomic<uint32_t> registration_{0};
  std::atomic<Instant::rep> end_{0};
};

}  // namespace trainfs::oss
