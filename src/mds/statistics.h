// What a serving MDS counts. Written by its event loop, read by any thread.
#pragma once

#include <array>
#include <chrono>

#include "trainfs/counters.h"

namespace trainfs::mds {

// Requests of sessions.
enum class Call : uint8_t {
  kExecute,
  kLookup,
  kGetattr,
  kReaddir,
  kOpen,
  kRelease,
  kInstantiate,
  kReadlink,
  kGetxattr,
  kListxattr,
  kStatfs,
  kRenew,
  kLock,  // without those that had to wait
  kUnlock,
  kTestLock,
};
inline constexpr const char* kCallNames[] = {
    "execute",  "lookup",    "getattr", "readdir", "open", "release", "instantiate", "readlink",
    "getxattr", "listxattr", "statfs",  "renew",   "lock", "unlock",  "testLock"};

struct Statistics {
  static constexpr size_t kChangesMax = 32;  // kinds of rpc::Operation

  std::array<LatencyHistogram, std::size(kCallNames)> calls;
  std::array<LatencyHistogram, kChangesMax> changes;  // executes, by kind

  // Once a second.
  Gauge sessions, connections, executing, osts, ostsServing, locks, lockWaits;
};

// Counts a call from here to the end of the scope.
class Timed {
 public:
  Timed(Statistics& statistics, Call call)
      : latency_(statistics.calls[static_cast<size_t>(call)]) {}
  ~Timed() { latency_.add(std::chrono::steady_clock::now() - begun_); }
  Timed(const Timed&) = delete;

  std::chrono::steady_clock::time_point begun() const { return begun_; }

 private:
  LatencyHistogram& latency_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace trainfs::mds
