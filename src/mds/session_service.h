// Sessions come, resume, lose their caches to each other, and end. One client at a time may rely on
// its caches: one that works while all others are at rest. Whoever else asks for something is
// answered when that one has given them up, or cannot use them any more. Owned by the MDS event
// loop.
#pragma once

#include <kj/timer.h>

#include <memory>
#include <string>
#include <vector>

#include "mds/ended_sessions.h"
#include "mds/fence.h"
#include "mds/lock_service.h"
#include "mds/names_in_flight.h"
#include "mds/own_commands.h"
#include "mds/reaper.h"
#include "mds/session_table.h"
#include "mds/size_recovery.h"

namespace trainfs::mds {

struct OpenedSession {
  int error = 0;
  std::string message;
  std::shared_ptr<Session> session;
  uint64_t attachment = 0;
  // Of a new session: what its client has open, and others have removed.
  std::vector<InodeId> removed;
};

class SessionService {
 public:
  struct Parts {
    Store& store;
    OwnCommands& commands;
    OstTable& osts;
    SessionTable& sessions;
    NamesInFlight& names;
    LockService& locks;
    SizeRecovery& recovery;
    Reaper& reaper;
    EndedSessions& ended;
    kj::Timer& timer;
    const ServerOptions& options;
    kj::TaskSet& tasks;  // for what nobody waits for; outlived by all parts
  };
  explicit SessionService(const Parts& parts);

  // Waits while another client gives up what it caches, at most until that one's term is over. The
  // promise may be dropped.
  kj::Promise<OpenedSession> open(std::string clientName, std::vector<OpenedFile> opens,
                                  rpc::ClientCallback::Client callback);
  struct Resumption {
    SessionId id;
    uint32_t epoch = 0;
    uint64_t number = 0;   // the client counts them; 0: it does not
    bool caching = false;  // or it was, and has not forgotten everything yet
  };
  // Throws kj::Exception of type DISCONNECTED when a later one has come before it.
  kj::Promise<OpenedSession> resume(Resumption resumption, std::vector<OpenedFile> opens,
                                    std::vector<FileLock> locks,
                                    rpc::ClientCallback::Client callback);

  // Before anything is answered that the session asks for: resolves when nobody else can have
  // cached what a change would make out of date, or, for a look, when nobody else is trusted with
  // what he has not reported.
  enum class Intent { kLook, kChange };
  kj::Promise<void> awake(std::shared_ptr<Session> session, Intent intent);

  bool renew(Session& session);
  // The connection of that attachment is lost. The session stays until its silence is too long.
  void detached(Session& session, uint64_t attachment);
  // The client's own will. It waits for nothing here any more, but requests of callers that were
  // killed may still lie at OSTs, so these are told as of an eviction.
  kj::Promise<void> end(std::shared_ptr<Session> session);
  // Returns at once; the session is fenced and ended in the background.
  void evict(std::shared_ptr<Session> session, const char* why);
  bool valid(SessionId id, uint32_t epoch) const;

  // Sends the cluster map to everybody who has an older one.
  void pushMap();
  // Nothing new is begun: the tasks are about to be dropped.
  void stop() { stopped_ = true; }
  // Watches the terms, as long as the server runs.
  kj::Promise<void> run();

 private:
  class Newcomer;
  kj::Promise<OpenedSession> admit(kj::Own<Newcomer> newcomer, std::string clientName,
                                   std::vector<OpenedFile> opens,
                                   rpc::ClientCallback::Client callback);
  kj::Promise<std::vector<InodeId>> closeRemoved(std::shared_ptr<Session> session);
  kj::Promise<void> takeBack(std::shared_ptr<Session> holder);
  // Unless it is being asked already.
  void askForCaches(const std::shared_ptr<Session>& holder);
  kj::Promise<void> recall(std::shared_ptr<Session> holder, rpc::ClientCallback::Client callback);
  kj::Promise<void> finish(std::shared_ptr<Session> session);
  kj::Promise<void> insistOnFinish(std::shared_ptr<Session> session);
  kj::Promise<void> reconcile(std::shared_ptr<Session> session);
  kj::Promise<void> reconcileNow(std::shared_ptr<Session> session);
  kj::Promise<void> pushMapTo(std::shared_ptr<Session> session);
  uint64_t attach(Session& session, rpc::ClientCallback::Client callback);
  bool atRest(const Session& session) const;
  std::shared_ptr<Session> onlyOneAwake() const;
  void giveCaches();

  Parts parts_;
  Fence fence_;
  uint32_t newcomers_ = 0;  // in open(); one at a time gets past opening_
  bool opening_ = false;
  bool stopped_ = false;
  Condition openingDone_;
};

}  // namespace trainfs::mds
