#include "mds/session_service.h"

#include <algorithm>
#include <unordered_set>

#include "mds/inodes.h"
#include "mds/namespace.h"
#include "mds/wire.h"
#include "trainfs/logging.h"

namespace trainfs::mds {

namespace {

OpenedSession refuse(int error, std::string message) {
  return {.error = error, .message = std::move(message)};
}

std::string describe(const Session& session) {
  return fmt::format("session {} ({})", session.id.value, session.clientName);
}

}  // namespace

// Counts a client that is waiting for its first answer, and lets one after the other in.
class SessionService::Newcomer {
 public:
  explicit Newcomer(SessionService& service) : service_(service) { ++service_.newcomers_; }
  ~Newcomer() {
    --service_.newcomers_;
    if (in_) {
      service_.opening_ = false;
      service_.openingDone_.notify();
    }
    // Somebody may have been recalled for a newcomer that did not get in.
    service_.giveCaches();
  }
  KJ_DISALLOW_COPY_AND_MOVE(Newcomer);

  kj::Promise<void> enter() {
    while (service_.opening_) co_await service_.openingDone_.wait();
    service_.opening_ = in_ = true;
  }

 private:
  SessionService& service_;
  bool in_ = false;
};

SessionService::SessionService(const Parts& parts)
    : parts_(parts), fence_(parts.osts, parts.timer, parts.options) {
  for (auto& record : sessions(*parts_.store.snapshot())) {
    parts_.sessions.add(record, parts_.timer.now());
    spdlog::info("session {} ({}) may resume", record.id.value, record.clientName);
  }
}

// ---- coming ----

kj::Promise<OpenedSession> SessionService::open(std::string clientName,
                                                std::vector<OpenedFile> opens,
                                                rpc::ClientCallback::Client callback) {
  auto& sessions = parts_.sessions;
  auto newcomer = kj::heap<Newcomer>(*this);
  co_await newcomer->enter();
  if (sessions.size() >= parts_.options.sessionsMax)
    co_return refuse(EAGAIN, fmt::format("there are {} clients already", sessions.size()));
  while (auto holder = sessions.mayHaveCached({})) co_await takeBack(kj::mv(holder));

  // From here on it happens, whether the client still waits or not: the log cannot be asked to
  // forget.
  auto admitted =
      admit(kj::mv(newcomer), std::move(clientName), std::move(opens), kj::mv(callback)).fork();
  parts_.tasks.add(admitted.addBranch().ignoreResult().catch_([](kj::Exception&&) {}));
  co_return co_await admitted.addBranch();
}

kj::Promise<OpenedSession> SessionService::admit(kj::Own<Newcomer> newcomer, std::string clientName,
                                                 std::vector<OpenedFile> opens,
                                                 rpc::ClientCallback::Client callback) {
  auto& sessions = parts_.sessions;
  auto outcome = co_await parts_.commands.run(OpenSessionOp{clientName});
  if (outcome.error != 0) co_return refuse(outcome.error, "the client's name is too long");
  auto records = mds::sessions(*parts_.store.snapshot());
  auto record = std::find_if(records.begin(), records.end(), [&](const SessionRecord& record) {
    return record.id.value == outcome.value;
  });
  KJ_ASSERT(record != records.end(), "a new session is not in the store", outcome.value);

  auto session = sessions.add(*record, parts_.timer.now());
  auto attachment = attach(*session, kj::mv(callback));
  session->lastRequest = parts_.timer.now();
  if (sessions.size() == 1) sessions.giveCaches(*session);
  // After an eviction a client opens a new session with files still open.
  sessions.known(*session, opens);
  auto removed = co_await closeRemoved(session);
  co_await reconcile(session);
  spdlog::info("{} opened{}", describe(*session), session->mayCache ? ", alone" : "");
  if (!removed.empty())
    spdlog::info("{} has {} files open that were removed", describe(*session), removed.size());
  co_return OpenedSession{
      .session = session, .attachment = attachment, .removed = std::move(removed)};
}

// What was removed after the session before this one had ended: nobody kept it for this client, so
// its objects are gone, or will be when those who did keep it have closed it. What is removed from
// now on is kept, for the session is known to have it open; what was decided before is waited for.
kj::Promise<std::vector<InodeId>> SessionService::closeRemoved(std::shared_ptr<Session> session) {
  std::vector<InodeId> opens, removed;
  for (auto [inode, writing] : session->opens) opens.push_back(inode);
  for (auto inode : opens)
    while (parts_.names.doomed(inode)) co_await parts_.names.changed();
  {
    auto view = parts_.store.snapshot();
    auto kept = orphansOf(*view, session->id);
    std::unordered_set<InodeId> ours(kept.begin(), kept.end());
    for (auto inode : opens) {
      auto record = findInode(*view, inode);
      bool there = record && (record->attributes.links != 0 || ours.contains(inode));
      if (!there) removed.push_back(inode);
    }
  }
  for (auto inode : removed) parts_.sessions.released(*session, inode);
  co_return removed;
}

// Never waits for a newcomer: a newcomer may be waiting for it. Who holds the caches goes on to:
// the newcomer's recall comes over the new connection, and only its answer says that nothing is
// cached any more.
kj::Promise<OpenedSession> SessionService::resume(Resumption resumption,
                                                  std::vector<OpenedFile> opens,
                                                  std::vector<FileLock> locks,
                                                  rpc::ClientCallback::Client callback) {
  if (!valid(resumption.id, resumption.epoch)) {
    spdlog::info("session {} wanted to resume but has ended", resumption.id.value);
    co_return refuse(ESTALE, "the session has ended: it was silent too long, or was evicted");
  }
  auto session = parts_.sessions.find(resumption.id);
  // One that was long on its way, over a connection that the client has given up: its list of open
  // files is old, and the client is elsewhere.
  if (resumption.number != 0 && resumption.number <= session->lastResumption)
    kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED, "the client has resumed again since",
                                         resumption.number, session->lastResumption));
  session->lastResumption = resumption.number;
  if (!session->known && !parts_.locks.reclaim(*session, locks)) {
    evict(session, "it claims locks that another client has");
    co_return refuse(ESTALE, "the session has ended: it claims locks that another client has");
  }
  auto holder = parts_.sessions.cacheHolder();
  if (!session->known && resumption.caching && holder) {
    evict(session, "it claims the caches that another client has");
    co_return refuse(ESTALE, "the session has ended: it claims caches that another client has");
  }
  auto attachment = attach(*session, kj::mv(callback));
  bool alone = parts_.sessions.size() == 1 && newcomers_ == 0;
  if (alone || (!session->known && resumption.caching)) parts_.sessions.giveCaches(*session);
  parts_.sessions.known(*session, opens);
  co_await reconcile(session);
  spdlog::info("{} resumed with {} open files", describe(*session), session->opens.size());
  co_return OpenedSession{.session = session, .attachment = attachment};
}

// Brings the store in line with what the client says it has open. Goes on when nobody waits for it
// any more, and before the next one begins: that one looks into the store for what this one does.
kj::Promise<void> SessionService::reconcile(std::shared_ptr<Session> session) {
  while (session->reconciling) co_await parts_.sessions.changed();
  session->reconciling = true;
  auto reconciled = reconcileNow(session)
                        .attach(kj::defer([this, session] {
                          session->reconciling = false;
                          parts_.sessions.notify();
                        }))
                        .fork();
  parts_.tasks.add(reconciled.addBranch().catch_([](kj::Exception&&) {}));
  co_await reconciled.addBranch();
}

kj::Promise<void> SessionService::reconcileNow(std::shared_ptr<Session> session) {
  std::vector<InodeId> written, dropped;
  std::vector<Operation> changes;
  {
    auto view = parts_.store.snapshot();
    written = writtenBy(*view, session->id);
    dropped = orphansOf(*view, session->id);
    // Of these it learns when it asks again; then it has them open, or lets go of them itself.
    auto untold = madeUnnamed(*view, session->id);
    auto isUntold = [&](InodeId inode) { return std::ranges::find(untold, inode) != untold.end(); };
    std::erase_if(dropped, isUntold);
    std::erase_if(written, isUntold);
  }
  std::unordered_set<InodeId> marked(written.begin(), written.end());
  for (auto [inode, writing] : session->opens)
    if (writing && !marked.contains(inode)) changes.push_back(OpenWriteOp{inode});
  auto isOpen = [&](InodeId inode) { return session->opens.contains(inode); };
  std::erase_if(dropped, isOpen);
  std::erase_if(written, isOpen);
  dropped.insert(dropped.end(), written.begin(), written.end());
  for (auto inode : dropped) changes.push_back(ReleaseOp{inode});

  // Files it wrote and lost without a report: their sizes are open.
  co_await parts_.recovery.takeOver(std::move(written));
  co_await parts_.commands.runAll(std::move(changes), session->id);
  if (!dropped.empty()) parts_.reaper.kick();
}

uint64_t SessionService::attach(Session& session, rpc::ClientCallback::Client callback) {
  session.callback = kj::mv(callback);
  session.lastRenewal = parts_.timer.now();
  return ++session.attachment;
}

bool SessionService::renew(Session& session) {
  if (session.ending) return false;
  session.lastRenewal = parts_.timer.now();
  return true;
}

void SessionService::detached(Session& session, uint64_t attachment) {
  if (session.attachment != attachment || session.ending) return;
  session.callback = nullptr;
  spdlog::info("{} lost its connection", describe(session));
  parts_.sessions.notify();
}

bool SessionService::valid(SessionId id, uint32_t epoch) const {
  auto session = parts_.sessions.find(id);
  return session && session->epoch == epoch && !session->ending;
}

// ---- caches ----

kj::Promise<void> SessionService::awake(std::shared_ptr<Session> session, Intent intent) {
  auto& sessions = parts_.sessions;
  session->lastRequest = parts_.timer.now();
  if (intent == Intent::kChange) {
    while (auto other = sessions.mayHaveCached(session->id)) co_await takeBack(kj::mv(other));
    co_return;
  }
  for (;;) {
    auto holder = sessions.cacheHolder();
    if (!holder || holder == session) co_return;
    co_await takeBack(kj::mv(holder));
  }
}

kj::Promise<void> SessionService::takeBack(std::shared_ptr<Session> holder) {
  auto& timer = parts_.timer;
  auto latest = timer.now() + parts_.options.silenceMax;
  while (parts_.sessions.find(holder->id) == holder && (holder->mayCache || !holder->known)) {
    if (holder->ending) {
      co_await parts_.sessions.changed();
      continue;
    }
    // While the client writes out what it has, it goes on renewing, and may take longer than a
    // term.
    auto until = std::min(holder->lastRenewal + parts_.options.clientTerm, latest);
    if (until <= timer.now()) {
      evict(holder, "it did not give up its caches in time");
      continue;
    }
    askForCaches(holder);
    co_await parts_.sessions.changed().exclusiveJoin(timer.atTime(until));
  }
}

void SessionService::askForCaches(const std::shared_ptr<Session>& holder) {
  KJ_IF_MAYBE (callback, holder->callback) {
    if (holder->askedForCaches == holder->attachment) return;
    holder->askedForCaches = holder->attachment;
    parts_.tasks.add(recall(holder, *callback));
  }
}

kj::Promise<void> SessionService::recall(std::shared_ptr<Session> holder,
                                         rpc::ClientCallback::Client callback) {
  auto attachment = holder->attachment;
  spdlog::info("{} is asked for its caches", describe(*holder));
  try {
    auto answer = co_await callback.recallRequest().send();
    if (holder->attachment != attachment || holder->ending) co_return;
    // An open that was told meanwhile may be missing from the list, so nothing is taken away.
    bool fits = answer.getOpens().size() <= kOpensPerSessionMax;
    if (fits)
      for (auto& file : decodeOpens(answer.getOpens()))
        fits &= parts_.sessions.opened(*holder, file);
    if (!fits) {
      evict(holder, "it has too many files open");
      co_return;
    }
    // It may have been at work without asking for anything.
    holder->lastRequest = parts_.timer.now();
    parts_.sessions.tookCaches(*holder);
    giveCaches();  // the newcomer may have gone meanwhile
  } catch (const kj::Exception& e) {
    spdlog::info("{} did not answer: {}", describe(*holder), e.getDescription().cStr());
  }
}

// It caches nothing, and cannot change anything without asking first.
bool SessionService::atRest(const Session& session) const {
  return session.known && !session.ending && !session.mayCache && session.opens.empty() &&
         session.requestsInFlight == 0 &&
         parts_.timer.now() - session.lastRequest >= parts_.options.restAfter;
}

std::shared_ptr<Session> SessionService::onlyOneAwake() const {
  auto all = parts_.sessions.all();
  if (all.size() == 1) return all.front();
  std::shared_ptr<Session> awake;
  for (auto& session : all) {
    if (atRest(*session)) continue;
    if (awake) return nullptr;
    awake = session;
  }
  return awake;
}

// Not while it waits for a glimpse: the record in that answer may be older than the other's rest.
void SessionService::giveCaches() {
  if (stopped_ || newcomers_ != 0 || parts_.sessions.cacheHolder()) return;
  auto session = onlyOneAwake();
  if (!session || !session->known || session->ending || session->glimpses != 0) return;
  if (session->askedForCaches == session->attachment) return;  // its answer may be on its way
  parts_.sessions.giveCaches(*session);
  spdlog::info("{} may cache", describe(*session));
  KJ_IF_MAYBE (callback, session->callback)
    parts_.tasks.add(callback->mayCacheRequest().send().ignoreResult().catch_(
        [](kj::Exception&&) {}));  // gone: it learns it when it resumes
}

// ---- going ----

kj::Promise<void> SessionService::end(std::shared_ptr<Session> session) {
  if (!session->ending) {
    spdlog::info("{} ended", describe(*session));
    session->ending = true;
    session->callback = nullptr;
    parts_.tasks.add(insistOnFinish(session));
  }
  while (parts_.sessions.find(session->id) == session) co_await parts_.sessions.changed();
}

void SessionService::evict(std::shared_ptr<Session> session, const char* why) {
  if (session->ending) return;
  spdlog::warn("{} is evicted: {}", describe(*session), why);
  session->ending = true;
  session->callback = nullptr;
  parts_.tasks.add(insistOnFinish(kj::mv(session)));
}

kj::Promise<void> SessionService::finish(std::shared_ptr<Session> session) {
  co_await fence_.everywhere(session->id, session->epoch);
  co_await parts_.recovery.takeOver(session->id);
  co_await parts_.commands.run(EndSessionOp{session->id});
  parts_.locks.drop(session->id);
  parts_.sessions.erase(session->id);
  parts_.ended.kick();
  parts_.reaper.kick();
  giveCaches();
}

kj::Promise<void> SessionService::insistOnFinish(std::shared_ptr<Session> session) {
  for (;;) {
    try {
      co_await finish(session);
      co_return;
    } catch (const kj::Exception& e) {
      spdlog::error("{} cannot be ended: {}", describe(*session), e.getDescription().cStr());
    }
    co_await parts_.timer.afterDelay(parts_.options.clientTerm);
  }
}

// ---- as long as the server runs ----

kj::Promise<void> SessionService::run() {
  for (;;) {
    co_await parts_.timer.afterDelay(parts_.options.tick);
    parts_.osts.expire();
    auto now = parts_.timer.now();
    for (auto& session : parts_.sessions.all()) {
      auto silence = now - session->lastRenewal;
      if (silence > parts_.options.silenceMax)
        evict(session, "it was silent too long");
      else if (silence > parts_.options.clientTerm && parts_.locks.wantedFrom(*session))
        evict(session, "it is silent, and others wait for its locks");
    }
    giveCaches();
  }
}

void SessionService::pushMap() {
  if (stopped_) return;
  for (auto& session : parts_.sessions.all())
    if (session->callback != nullptr && !session->pushingMap) parts_.tasks.add(pushMapTo(session));
}

// One map at a time is on its way to a client; what changes meanwhile goes in the next.
kj::Promise<void> SessionService::pushMapTo(std::shared_ptr<Session> session) {
  session->pushingMap = true;
  KJ_DEFER(session->pushingMap = false);
  for (uint64_t sent = 0; sent != parts_.osts.version();) {
    auto callback = KJ_UNWRAP_OR(session->callback, co_return);
    sent = parts_.osts.version();
    auto request = callback.mapChangedRequest();
    encode(parts_.osts.map(), request.initMap());
    try {
      co_await request.send();
    } catch (const kj::Exception&) {
      co_return;  // gone: it gets the map when it resumes
    }
  }
}

}  // namespace trainfs::mds
