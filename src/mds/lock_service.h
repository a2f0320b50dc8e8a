// Locks of files on behalf of sessions: around the table, calls that wait, and the time after a
// restart in which clients claim again what they had. Owned by the MDS event loop.
//
// Locks are in memory only. After a restart each client brings its own when it resumes; until all
// have come back or are gone, nobody is granted anything new.
#pragma once

#include <kj/async.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "mds/lock_table.h"
#include "mds/session_table.h"

namespace trainfs::mds {

class LockService {
 public:
  explicit LockService(SessionTable& sessions) : sessions_(sessions) {}

  // No session can have locks that are not in the table. What follows without a wait needs that.
  kj::Promise<void> settled();
  // An errno: EAGAIN, ENOLCK.
  int tryLock(const Session& session, const FileLock& lock);
  std::optional<LockRequest> conflict(const Session& session, const FileLock& lock) const;
  void unlock(const Session& session, const FileLock& lock);

  // When it is granted. `number` is the client's name of the wait, which stays when the promise is
  // dropped: the next call with it takes it over.
  kj::Promise<int> lock(std::shared_ptr<Session> session, FileLock lock, uint64_t number);
  // Ends the wait. 0: it had been granted before.
  kj::Promise<int> giveUp(std::shared_ptr<Session> session, FileLock lock, uint64_t number);

  // What a client had before the restart. False: somebody else has some of it.
  bool reclaim(const Session& session, const std::vector<FileLock>& locks);
  // The session has ended, and nothing of it is executed anywhere any more.
  void drop(SessionId session);
  // Others wait for a lock that it has, or may have.
  bool wantedFrom(const Session& session) const;

  const LockTable& table() const { return table_; }

 private:
  struct Wait {
    SessionId session;
    uint64_t number = 0;  // the client's name of it
    uint64_t call = 0;    // grows: the last one is answered
    kj::Own<kj::PromiseFulfiller<int>> answer;
  };

  LockTicket ticketOf(SessionId session, uint64_t number);
  void forget(LockTicket ticket);
  void answerEnded();

  SessionTable& sessions_;
  LockTable table_;
  std::map<LockTicket, Wait> waits_;
  std::map<SessionId, std::map<uint64_t, LockTicket>> tickets_;  // by numbers
  LockTicket lastTicket_ = 0;
  uint32_t unsettled_ = 0;  // calls in settled()
};

}  // namespace trainfs::mds
