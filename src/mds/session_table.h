// The sessions of clients, as the running server knows them: the store remembers only that they
// exist. No I/O. Owned by the MDS event loop.
#pragma once

#include <kj/time.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "mds.capnp.h"
#include "mds/condition.h"
#include "mds/namespace.h"

namespace trainfs::mds {

// Files that one client may have open; more is ENFILE.
inline constexpr size_t kOpensPerSessionMax = 1u << 20;

struct OpenedFile {
  InodeId inode;
  bool writing = false;
};

struct Session {
  SessionId id;
  uint32_t epoch = 0;
  std::string clientName;

  // Its open files are known: it was opened, or has resumed, in this run of the server. Until then
  // it may have anything open, and anything cached.
  bool known = false;
  bool mayCache = false;  // was told so. Changed through SessionTable only
  bool ending = false;    // nothing is executed for it any more
  kj::TimePoint lastRenewal = kj::origin<kj::TimePoint>();

  // The client's present connection; grows with each, so that the end of an older one is told
  // apart.
  uint64_t attachment = 0;
  uint64_t lastResumption = 0;  // the client's number of it, in this run of the server
  bool reconciling = false;     // the store with what it says it has open
  kj::Maybe<rpc::ClientCallback::Client> callback;  // there while connected

  uint64_t askedForCaches = 0;  // the attachment that is being asked; 0: none

  uint32_t requestsInFlight = 0;
  uint32_t glimpses = 0;  // of which wait for OSTs, with a record that was read before
  kj::TimePoint lastRequest = kj::origin<kj::TimePoint>();
  bool pushingMap = false;

  std::unordered_map<InodeId, bool> opens;  // -> writing. Changed through SessionTable only
};

class SessionTable {
 public:
  std::shared_ptr<Session> add(const SessionRecord& record, kj::TimePoint now);
  std::shared_ptr<Session> find(SessionId id) const;
  void erase(SessionId id);
  // All that have not ended durably, those that are ending included.
  size_t size() const { return sessions_.size(); }
  std::vector<std::shared_ptr<Session>> all() const;

  void giveCaches(Session& session);
  // It has answered that it caches nothing.
  void tookCaches(Session& session);
  // Anybody but `asker` who may have cached what that one could change: who has the caches, and
  // after a restart all who have not come back yet.
  std::shared_ptr<Session> mayHaveCached(SessionId asker) const;
  // Who was told that it may cache: at most one, by design.
  std::shared_ptr<Session> cacheHolder() const;

  // False: the session has too many files open.
  bool opened(Session& session, OpenedFile file);
  void released(Session& session, InodeId inode);
  // The session says what it has open, all of it: no longer may it have anything open.
  void known(Session& session, const std::vector<OpenedFile>& opens);

  // All have been heard of in this run of the server.
  bool allKnown() const { return unknown_.empty(); }
  // Sessions that have the inode open, or may have, because they are not known yet.
  std::vector<SessionId> holders(InodeId inode) const;

  // After a session came, resumed, renewed, lost its connection, gave up its caches or ended.
  void notify() { changed_.notify(); }
  kj::Promise<void> changed() { return changed_.wait(); }

 private:
  void replaceOpens(Session& session, const std::vector<OpenedFile>& opens);
  void forgetOpener(InodeId inode, SessionId session);

  std::map<uint64_t, std::shared_ptr<Session>> sessions_;
  std::set<SessionId> unknown_;
  SessionId cacheHolder_;  // 0: none
  std::unordered_map<InodeId, std::vector<SessionId>> openers_;
  Condition changed_;
};

}  // namespace trainfs::mds
