// Who may not speak any more: fences that the MDS has set. Shared by the control thread and all
// data workers; one small lock, taken for a hello or a fence, never for a request.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "trainfs/types.h"

namespace trainfs::oss {

class SessionTable {
 public:
  // From now on that session is out up to that epoch.
  void fence(SessionId session, uint32_t epoch);
  // After a new registration every session is checked with the MDS anew. What an earlier run of the MDS
  // fenced may have been resumed since: a fence that stayed would keep that client out for ever.
  void clear();
  bool isFenced(SessionId session, uint32_t epoch) const;

 private:
  // The oldest go first: a session that is forgotten here is still refused by the MDS at its hello.
  static constexpr size_t kFencesMax = 65536;

  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, uint32_t> fencedEpoch_;  // by session
  std::deque<uint64_t> order_;
};

enum class Verdict : uint8_t {
  kValid,
  kInvalid,  // no such session, or its epoch is over
  kUnknown,  // the MDS could not be asked in time
};

// Asks the MDS. Implemented by the control thread.
class SessionVerifier {
 public:
  // Any thread. `ost` counts the OSTs of this process. `done` is called exactly once, on any
  // thread, in bounded time.
  virtual void check(uint32_t ost, SessionId session, uint32_t epoch,
                     std::function<void(Verdict)> done) = 0;

 protected:
  ~SessionVerifier() = default;
};

}  // namespace trainfs::oss
