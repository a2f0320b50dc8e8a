#include "mds/session_rpc.h"

#include <algorithm>

#include "mds/wire.h"

namespace trainfs::mds {

namespace {

class SessionRpc final : public rpc::Session::Server {
 public:
  SessionRpc(std::shared_ptr<Core> core, std::shared_ptr<Session> session, uint64_t attachment)
      : core_(std::move(core)), session_(std::move(session)), attachment_(attachment) {}
  ~SessionRpc() { core_->service.detached(*session_, attachment_); }

  kj::Promise<void> execute(ExecuteContext context) override { return start(runExecute(context)); }
  kj::Promise<void> lookup(LookupContext context) override { return start(runLookup(context)); }
  kj::Promise<void> getattr(GetattrContext context) override { return start(runGetattr(context)); }
  kj::Promise<void> readdir(ReaddirContext context) override { return start(runReaddir(context)); }
  kj::Promise<void> open(OpenContext context) override { return start(runOpen(context)); }
  kj::Promise<void> release(ReleaseContext context) override { return start(runRelease(context)); }
  kj::Promise<void> end(EndContext context) override { return start(core_->service.end(session_)); }
  kj::Promise<void> instantiate(InstantiateContext context) override {
    return start(runInstantiate(context));
  }
  kj::Promise<void> getxattr(GetxattrContext context) override {
    return start(runGetxattr(context));
  }
  kj::Promise<void> listxattr(ListxattrContext context) override {
    return start(runListxattr(context));
  }
  kj::Promise<void> lock(LockContext context) override { return start(runLock(context)); }
  kj::Promise<void> testLock(TestLockContext context) override {
    return start(runTestLock(context));
  }
  kj::Promise<void> unlock(UnlockContext context) override;
  kj::Promise<void> readlink(ReadlinkContext context) override;
  kj::Promise<void> statfs(StatfsContext context) override;
  kj::Promise<void> renew(RenewContext context) override;
  kj::Promise<void> map(MapContext context) override;
  kj::Promise<void> names(NamesContext context) override;

 private:
  // Counts a request of the session while it is worked on.
  class InFlight {
   public:
    InFlight(SessionRpc& rpc, Call call)
        : session_(rpc.session_), timed_(rpc.core_->statistics, call) {
      rpc.requireLive();
      if (session_->requestsInFlight >= kSlotsPerSession)
        kj::throwFatalException(KJ_EXCEPTION(OVERLOADED, "too many requests of one session"));
      ++session_->requestsInFlight;
    }
    ~InFlight() { --session_->requestsInFlight; }
    KJ_DISALLOW_COPY_AND_MOVE(InFlight);

    std::chrono::nanoseconds took() const {
      return std::chrono::steady_clock::now() - timed_.begun();
    }

   private:
    std::shared_ptr<Session> session_;
    Timed timed_;
  };

  kj::Promise<void> start(kj::Promise<void> call) { return core_->guard(kj::mv(call)); }
  void requireLive() const;
  void requireLatest() const;
  kj::Promise<void> awake(SessionService::Intent intent);

  kj::Promise<void> runExecute(ExecuteContext context);
  kj::Promise<void> runLookup(LookupContext context);
  kj::Promise<void> runGetattr(GetattrContext context);
  kj::Promise<void> runReaddir(ReaddirContext context);
  kj::Promise<void> runOpen(OpenContext context);
  kj::Promise<void> runRelease(ReleaseContext context);
  kj::Promise<void> runInstantiate(InstantiateContext context);
  kj::Promise<void> runGetxattr(GetxattrContext context);
  kj::Promise<void> runListxattr(ListxattrContext context);
  kj::Promise<void> runLock(LockContext context);
  kj::Promise<void> runTestLock(TestLockContext context);

  // For results with the fields error and node.
  template <typename Results>
  static void answer(const Result<Node>& node, Results results) {
    results.setError(node.errnoOrZero());
    if (node) encode(*node, results.initNode());
  }

  std::shared_ptr<Core> core_;
  std::shared_ptr<Session> session_;
  const uint64_t attachment_;
};

void SessionRpc::requireLive() const {
  core_->requireServing();
  if (session_->ending)
    kj::throwFatalException(
        KJ_EXCEPTION(DISCONNECTED, "this session has ended", session_->id.value));
  requireLatest();
}

// What a lost connection still brings is answered over the new one. Done here, too, it might come
// late: a release would take away what was opened since. A renewal is refused as well, because the
// client would stay where nothing else is answered.
void SessionRpc::requireLatest() const {
  if (attachment_ != session_->attachment)
    kj::throwFatalException(
        KJ_EXCEPTION(DISCONNECTED, "this session goes on over another connection"));
}

// Others give up first what they cache.
kj::Promise<void> SessionRpc::awake(SessionService::Intent intent) {
  co_await core_->service.awake(session_, intent);
  requireLive();
}

kj::Promise<void> SessionRpc::runExecute(ExecuteContext context) {
  InFlight inFlight(*this, Call::kExecute);
  auto params = context.getParams();
  KJ_REQUIRE(params.getSlot() < kSlotsPerSession, "no such slot", params.getSlot());
  ChangeRequest request{.slot = params.getSlot(),
                        .sequence = params.getSequence(),
                        .identity = decode(params.getIdentity())};
  auto kind = std::min<size_t>(params.getOp().which(), Statistics::kChangesMax - 1);
  auto good = decode(params.getOp(), request);
  context.releaseParams();
  // A recall waits for reports, so these wait for nobody: only the one who writes has cached what
  // they change.
  bool report = std::holds_alternative<ReportOp>(request.op);
  if (good && !report) co_await awake(SessionService::Intent::kChange);
  ChangeReply reply{.error = good.errnoOrZero()};
  if (good) reply = co_await core_->operations.execute(session_, std::move(request));
  core_->statistics.changes[kind].add(inFlight.took());
  if (reply.sessionOver) core_->service.evict(session_, "it reused a slot with an old sequence");
  if (reply.error == ESTALE) requireLive();  // its session, not the inode, is what is gone
  auto out = context.getResults().initReply();
  out.setError(reply.error);
  out.setExisted(reply.existed);
  if (reply.node) encode(*reply.node, out.initNode());
}

kj::Promise<void> SessionRpc::runLookup(LookupContext context) {
  InFlight inFlight(*this, Call::kLookup);
  co_await awake(SessionService::Intent::kLook);
  auto params = context.getParams();
  auto node =
      co_await core_->operations.lookup(session_, {params.getParent()}, text(params.getName()));
  answer(node, context.getResults());
}

kj::Promise<void> SessionRpc::runGetattr(GetattrContext context) {
  InFlight inFlight(*this, Call::kGetattr);
  co_await awake(SessionService::Intent::kLook);
  auto node = co_await core_->operations.getattr(session_, {context.getParams().getInode()});
  answer(node, context.getResults());
}

kj::Promise<void> SessionRpc::runReaddir(ReaddirContext context) {
  InFlight inFlight(*this, Call::kReaddir);
  co_await awake(SessionService::Intent::kLook);
  auto params = context.getParams();
  auto page = co_await core_->operations.readdir(session_, {params.getInode()}, params.getCookie(),
                                                 std::max(params.getEntriesMax(), 1u));
  auto results = context.getResults();
  results.setError(page.errnoOrZero());
  if (!page) co_return;
  results.setEnd(page->end);
  encode(*page, results.initEntries(page->entries.size()));
}

kj::Promise<void> SessionRpc::runOpen(OpenContext context) {
  InFlight inFlight(*this, Call::kOpen);
  auto params = context.getParams();
  OpenedFile file{{params.getInode()}, params.getWriting()};
  co_await awake(file.writing ? SessionService::Intent::kChange : SessionService::Intent::kLook);
  answer(co_await core_->operations.open(session_, file), context.getResults());
}

kj::Promise<void> SessionRpc::runRelease(ReleaseContext context) {
  InFlight inFlight(*this, Call::kRelease);
  auto done = co_await core_->operations.release(session_, {context.getParams().getInode()});
  context.getResults().setError(done.errnoOrZero());
}

kj::Promise<void> SessionRpc::runInstantiate(InstantiateContext context) {
  InFlight inFlight(*this, Call::kInstantiate);
  co_await awake(SessionService::Intent::kChange);
  auto params = context.getParams();
  auto node =
      co_await core_->operations.instantiate(session_, {params.getInode()}, params.getComponent());
  answer(node, context.getResults());
}

// What waits is not among the requests in flight, of which there are few: it may do so for days.
// The lock service counts it; what waits for other clients to resume is bounded as all that a
// connection was not answered yet.
kj::Promise<void> SessionRpc::runLock(LockContext context) {
  requireLive();
  auto params = context.getParams();
  auto wait = params.getWait();
  bool givesUp = params.getGiveUp();
  auto lock = decodeLock(params.getLock());
  context.releaseParams();
  auto results = context.getResults();
  results.setError(lock.errnoOrZero());
  if (!lock) co_return;
  auto& locks = core_->locks;
  if (wait == 0) {
    co_await locks.settled();
    InFlight inFlight(*this, Call::kLock);
    results.setError(locks.tryLock(*session_, *lock));
  } else if (givesUp) {
    results.setError(co_await locks.giveUp(session_, *lock, wait));
  } else {
    results.setError(co_await locks.lock(session_, *lock, wait));
  }
}

kj::Promise<void> SessionRpc::unlock(UnlockContext context) {
  Timed timed(core_->statistics, Call::kUnlock);
  requireLive();
  auto lock = decodeLock(context.getParams().getLock());
  if (lock) core_->locks.unlock(*session_, *lock);
  context.getResults().setError(lock.errnoOrZero());
  return kj::READY_NOW;
}

kj::Promise<void> SessionRpc::runTestLock(TestLockContext context) {
  requireLive();
  auto lock = decodeLock(context.getParams().getLock());
  context.releaseParams();
  auto results = context.getResults();
  results.setError(lock.errnoOrZero());
  if (!lock) co_return;
  co_await core_->locks.settled();
  InFlight inFlight(*this, Call::kTestLock);
  auto conflict = core_->locks.conflict(*session_, *lock);
  results.setFound(conflict.has_value());
  if (!conflict) co_return;
  // Elsewhere the number means another process.
  if (conflict->session != session_->id) conflict->lock.process = 0;
  encodeLock(conflict->lock, results.initConflict());
}

kj::Promise<void> SessionRpc::readlink(ReadlinkContext context) {
  Timed timed(core_->statistics, Call::kReadlink);
  requireLive();
  auto target = core_->operations.readlink({context.getParams().getInode()});
  auto results = context.getResults();
  results.setError(target.errnoOrZero());
  if (target) results.setTarget(bytes(*target));
  return kj::READY_NOW;
}

kj::Promise<void> SessionRpc::runGetxattr(GetxattrContext context) {
  Timed timed(core_->statistics, Call::kGetxattr);
  requireLive();
  co_await awake(SessionService::Intent::kLook);
  auto params = context.getParams();
  auto value = core_->operations.getxattr({params.getInode()}, text(params.getName()));
  auto results = context.getResults();
  results.setError(value.errnoOrZero());
  if (value) results.setValue(bytes(*value));
}

kj::Promise<void> SessionRpc::runListxattr(ListxattrContext context) {
  Timed timed(core_->statistics, Call::kListxattr);
  requireLive();
  co_await awake(SessionService::Intent::kLook);
  auto names = core_->operations.listxattr({context.getParams().getInode()});
  auto results = context.getResults();
  results.setError(names.errnoOrZero());
  if (!names) co_return;
  auto list = results.initNames(names->size());
  for (size_t i = 0; i < names->size(); ++i) list.set(i, (*names)[i].c_str());
}

kj::Promise<void> SessionRpc::names(NamesContext context) {
  requireLive();
  auto params = context.getParams();
  auto after = params.getAfter();
  auto page = core_->operations.names({params.getInode()}, {params.getRoot()},
                                      {after.getParent(), after.getPlace()});
  auto results = context.getResults();
  results.setError(page.errnoOrZero());
  if (page) encode(*page, results);
  return kj::READY_NOW;
}

// Data space is the OSTs', as far as they can be reached; inodes are the MDT's.
kj::Promise<void> SessionRpc::statfs(StatfsContext context) {
  Timed timed(core_->statistics, Call::kStatfs);
  requireLive();
  Space space;
  for (auto& [index, ost] : core_->osts.all()) {
    if (!ost.active) continue;
    space.totalBytes += ost.space.totalBytes;
    space.freeBytes += ost.space.freeBytes;
    space.availableBytes += ost.space.availableBytes;
  }
  auto mdt = core_->options.space();
  space.files = mdt.files;
  space.freeFiles = mdt.freeFiles;
  encodeSpace(space, context.getResults().initStats());
  return kj::READY_NOW;
}

kj::Promise<void> SessionRpc::renew(RenewContext context) {
  Timed timed(core_->statistics, Call::kRenew);
  core_->requireServing();
  requireLatest();
  context.getResults().setValid(core_->service.renew(*session_));
  return kj::READY_NOW;
}

kj::Promise<void> SessionRpc::map(MapContext context) {
  requireLive();
  encode(core_->osts.map(), context.getResults().initMap());
  return kj::READY_NOW;
}

}  // namespace

rpc::Session::Client makeSessionRpc(std::shared_ptr<Core> core, std::shared_ptr<Session> session,
                                    uint64_t attachment) {
  return kj::heap<SessionRpc>(std::move(core), std::move(session), attachment);
}

}  // namespace trainfs::mds
