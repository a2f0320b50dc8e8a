// Until when an OST may be used, by this machine's clock: so long the MDS counts on it. Extended by
// the control thread; a data worker that reads it a moment too early acts as if its request had
// come a moment earlier, and the lease ends early enough for that (Control::extendLease).
#pragma once

#include <atomic>
#include <chrono>

namespace trainfs::oss {

class Lease {
 public:
  using Instant = std::chrono::steady_clock::time_point;
  void extendTo(Instant end) { end_ = end.time_since_epoch().count(); }
  bool holds() const { return std::chrono::steady_clock::now().time_since_epoch().count() < end_; }

 private:
  std::atomic<Instant::rep> end_{0};
};

}  // namespace trainfs::oss
