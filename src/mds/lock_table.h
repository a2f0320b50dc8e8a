// Who has locked which bytes of which file, and who waits for what: advisory locks over all
// clients. Pure: no clock, no network. Owned by the MDS event loop.
//
// As on Linux's own file systems, only locks that are held stand in the way of a new one, not older
// waits; when something is let go, waits are looked at in the order in which they came. A wait for
// record locks that would close a circle of owners waiting for each other ends with EDEADLK.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainfs/file_lock.h"
#include "trainfs/result.h"

namespace trainfs::mds {

// Locks count as ranges. More is ENOLCK.
inline constexpr size_t kLocksMax = 1u << 20;
inline constexpr size_t kLocksPerSessionMax = 65'536;
inline constexpr size_t kLockWaitsPerSessionMax = 4'096;
// What a session may bring along from before a restart: a wait that is granted may exceed the
// limit.
inline constexpr size_t kLocksClaimedMax = kLocksPerSessionMax + 2 * kLockWaitsPerSessionMax;
// Holders that are looked at for circles in one step; what needs more is not found.
inline constexpr size_t kCircleStepsMax = 65'536;

struct LockRequest {
  SessionId session;
  FileLock lock;
};

// Names a wait; the smaller came first.
using LockTicket = uint64_t;

class LockTable {
 public:
  // Now or not at all: EAGAIN. A failed flock(2) has let go of what its owner had, as Linux does.
  Status tryLock(const LockRequest& request);
  // One that was granted before a restart. False: somebody else has it.
  bool restore(const LockRequest& request);
  // True: granted. False: it waits, until takeEnded() has the ticket or cancel(). Errors: EDEADLK,
  // ENOLCK.
  Result<bool> lock(const LockRequest& request, LockTicket ticket);
  void unlock(const LockRequest& request);  // its range; the mode means nothing
  void cancel(LockTicket ticket);
  void drop(SessionId session);  // its locks and waits

  bool waits(LockTicket ticket) const { return waits_.contains(ticket); }
  // A lock that stands in the way of this one. Its session beside it.
  std::optional<LockRequest> conflict(const LockRequest& request) const;
  // Somebody else waits for what this session holds.
  bool wantedFrom(SessionId session) const;

  // Waits that ended since the last call: 0, granted; or an errno.
  struct Ended {
    LockTicket ticket;
    int error;
  };
  std::vector<Ended> takeEnded() { return std::exchange(ended_, {}); }

  size_t locks() const { return locks_; }
  size_t waiting() const { return waits_.size(); }

 private:
  struct Owner {
    SessionId session;
    LockKind kind;
    uint64_t number;
    friend auto operator<=>(const Owner&, const Owner&) = default;
  };
  struct Held {
    LockRanges ranges;
    uint32_t process = 0;
  };
  struct Place {
    InodeId inode;
    LockKind kind;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct File {
    std::map<Owner, Held> held;
    std::set<Owner> exclusive;  // those of them who share not all that they hold
    std::set<LockTicket> waits;
  };
  struct Count {
    size_t locks = 0, waits = 0;
  };

  static Owner ownerOf(const LockRequest& r) { return {r.session, r.lock.kind, r.lock.owner}; }
  static Place placeOf(const LockRequest& r) { return {r.lock.inode, r.lock.kind}; }

  bool has(const LockRequest& request) const;
  bool isFull(SessionId session) const;
  bool isFree(const LockRequest& request) const { return !conflict(request); }
  bool makeRoom(const LockRequest& request);
  void grant(const LockRequest& request);
  void give(const LockRequest& request);
  void change(Place place, Owner owner, const FileLock& lock, bool locks);
  bool nobodyCanPass(const File& file) const;
  void endWait(LockTicket ticket);
  void wake(Place place);
  void breakCircles(Place place, Owner owner, size_t& steps);
  // `steps`: how many holders may still be looked at.
  std::vector<Owner> blockers(const LockRequest& request, size_t& steps) const;
  bool closesCircle(const LockRequest& request, size_t& steps) const;
  void forgetIfEmpty(Place place);

  std::map<Place, File> files_;  // those with locks or waits
  std::map<LockTicket, LockRequest> waits_;
  std::map<Owner, std::set<LockTicket>> waitsOf_;
  std::map<SessionId, Count> counts_;
  size_t locks_ = 0;
  std::vector<Ended> ended_;
};

}  // namespace trainfs::mds
