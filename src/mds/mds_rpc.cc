#include "mds/mds_rpc.h"

#include <algorithm>

#include "mds/session_rpc.h"
#include "mds/wire.h"
#include "trainfs/cluster_map.h"
#include "trainfs/logging.h"

namespace trainfs::mds {

namespace {

constexpr size_t kTextBytesMax = 1024;  // names of clients and hosts, uuids
constexpr uint32_t kWaitingMax = 16;    // openSession and registerOst of one connection

uint32_t milliseconds(kj::Duration duration) {
  return duration / kj::MILLISECONDS;
}

std::string refusalOf(int error, const std::string& ost) {
  if (error == EEXIST) return ost + " is another target already; choose another --index";
  if (error == ESTALE)
    return ost +
           " was served from a newer copy since: this is an older copy of the target; start the "
           "newest, or, if that is lost, this one with --accept-older-copy";
  return "malformed registration";
}

// Held by an OSS for one OST; dropped with its connection.
class OstLeaseRpc final : public rpc::OstLease::Server {
 public:
  OstLeaseRpc(std::shared_ptr<Core> core, uint32_t index, uint64_t registration)
      : core_(std::move(core)), index_(index), registration_(registration) {}
  ~OstLeaseRpc() { core_->osts.lost(index_, registration_, "its connection is lost"); }

  kj::Promise<void> renew(RenewContext context) override {
    core_->requireServing();
    if (!core_->osts.renew(index_, registration_, decodeSpace(context.getParams().getStats())))
      kj::throwFatalException(
          KJ_EXCEPTION(DISCONNECTED, "this lease is over: register again", index_));
    context.getResults().setChainVersion(core_->osts.find(index_)->record.chainVersion);
    return kj::READY_NOW;
  }
  kj::Promise<void> checkSession(CheckSessionContext context) override {
    core_->requireServing();
    auto params = context.getParams();
    bool valid = core_->service.valid({params.getSession()}, params.getEpoch());
    context.getResults().setValid(valid);
    return kj::READY_NOW;
  }

 private:
  std::shared_ptr<Core> core_;
  const uint32_t index_;
  const uint64_t registration_;
};

class MdsRpc final : public rpc::Mds::Server {
 public:
  MdsRpc(std::shared_ptr<Core> core, std::string peerHost)
      : core_(std::move(core)), peerHost_(std::move(peerHost)) {}

  kj::Promise<void> hello(HelloContext context) override {
    core_->requireServing();
    auto results = context.getResults();
    results.setProtocolVersion(rpc::PROTOCOL_VERSION);
    results.setFsname(core_->fsname.c_str());
    results.setMdtIndex(core_->mdtIndex);
    return kj::READY_NOW;
  }
  kj::Promise<void> openSession(OpenSessionContext context) override {
    core_->requireServing();
    return core_->guard(runOpenSession(context));
  }
  kj::Promise<void> registerOst(RegisterOstContext context) override {
    core_->requireServing();
    return core_->guard(runRegisterOst(context));
  }
  kj::Promise<void> status(StatusContext context) override;
  kj::Promise<void> changelog(ChangelogContext context) override;
  kj::Promise<void> changelogUsers(ChangelogUsersContext context) override;
  kj::Promise<void> registerChangelog(RegisterChangelogContext context) override {
    core_->requireServing();
    return core_->guard(runRegisterChangelog(context));
  }
  kj::Promise<void> deregisterChangelog(DeregisterChangelogContext context) override {
    core_->requireServing();
    return core_->guard(runDeregisterChangelog(context));
  }
  kj::Promise<void> clearChangelog(ClearChangelogContext context) override {
    core_->requireServing();
    return core_->guard(runClearChangelog(context));
  }

 private:
  // A call that may wait long, of which a connection has few at a time.
  class Waiting {
   public:
    explicit Waiting(std::shared_ptr<uint32_t> count) : count_(std::move(count)) {
      if (*count_ >= kWaitingMax)
        kj::throwFatalException(KJ_EXCEPTION(OVERLOADED, "too many calls wait on one connection"));
      ++*count_;
    }
    ~Waiting() { --*count_; }
    KJ_DISALLOW_COPY_AND_MOVE(Waiting);

   private:
    std::shared_ptr<uint32_t> count_;
  };

  kj::Promise<void> runOpenSession(OpenSessionContext context);
  kj::Promise<void> runRegisterOst(RegisterOstContext context);
  kj::Promise<void> runRegisterChangelog(RegisterChangelogContext context);
  kj::Promise<void> runDeregisterChangelog(DeregisterChangelogContext context);
  kj::Promise<void> runClearChangelog(ClearChangelogContext context);
  std::string wrongFsname(capnp::Text::Reader given) const;

  std::shared_ptr<Core> core_;
  const std::string peerHost_;
  std::shared_ptr<uint32_t> waiting_ = std::make_shared<uint32_t>(0);
};

std::string MdsRpc::wrongFsname(capnp::Text::Reader given) const {
  if (text(given) == core_->fsname) return {};
  return fmt::format("this server has the file system \"{}\", not \"{}\"", core_->fsname,
                     text(given).substr(0, kTextBytesMax));
}

kj::Promise<void> MdsRpc::runOpenSession(OpenSessionContext context) {
  Waiting waiting(waiting_);
  auto request = context.getParams().getRequest();
  OpenedSession opened;
  if (auto wrong = wrongFsname(request.getFsname()); !wrong.empty()) {
    opened = {.error = EINVAL, .message = wrong};
  } else if (request.getClientName().size() > kTextBytesMax || !request.hasCallback()) {
    opened = {.error = EINVAL,
              .message = "a session needs a callback and a name of at most 1024 bytes"};
  } else if (request.getOpens().size() > kOpensPerSessionMax) {
    opened = {.error = EINVAL, .message = "too many open files"};
  } else if (request.getLocks().size() > kLocksClaimedMax) {
    opened = {.error = EINVAL, .message = "too many locks"};
  } else if (request.getResumeId() != 0) {
    auto locks = decodeLocks(request.getLocks());
    KJ_REQUIRE(locks.ok(), "a lock of no range");
    opened = co_await core_->service.resume({{request.getResumeId()},
                                             request.getResumeEpoch(),
                                             request.getResumption(),
                                             request.getCaching()},
                                            decodeOpens(request.getOpens()), *std::move(locks),
                                            request.getCallback());
  } else {
    opened = co_await core_->service.open(std::string(text(request.getClientName())),
                                          decodeOpens(request.getOpens()), request.getCallback());
  }
  auto out = context.getResults().initOpened();
  out.setError(opened.error);
  out.setMessage(opened.message.c_str());
  if (!opened.session) co_return;
  auto& session = *opened.session;
  out.setSession(makeSessionRpc(core_, opened.session, opened.attachment));
  out.setId(session.id.value);
  out.setEpoch(session.epoch);
  out.setTermMilliseconds(milliseconds(core_->options.clientTerm));
  out.setMayCache(session.mayCache);
  auto removed = out.initRemoved(opened.removed.size());
  for (uint32_t i = 0; i < opened.removed.size(); ++i) removed.set(i, opened.removed[i].value);
  encode(core_->osts.map(), out.initMap());
}

kj::Promise<void> MdsRpc::runRegisterOst(RegisterOstContext context) {
  Waiting waiting(waiting_);
  auto params = context.getParams();
  auto in = params.getRequest();
  auto results = context.getResults();
  auto refuse = [&](int error, const std::string& message) {
    spdlog::warn("refused OST {} of {}: {}", in.getIndex(), peerHost_, message);
    results.setError(error);
    results.setMessage(message.c_str());
  };
  if (auto wrong = wrongFsname(in.getFsname()); !wrong.empty()) {
    refuse(EINVAL, wrong);
    co_return;
  }
  if (in.getUuid().size() > kTextBytesMax || in.getHost().size() > kTextBytesMax ||
      in.getPorts().size() > kOstPortsMax || !params.hasControl()) {
    refuse(EINVAL, "a registration needs a control interface, and fields of sane length");
    co_return;
  }

  RegisterOstOp op{.index = in.getIndex(),
                   .uuid = std::string(text(in.getUuid())),
                   .host = in.getHost().size() == 0 ? peerHost_ : std::string(text(in.getHost())),
                   .start = in.getStart(),
                   .acceptedStart = in.getAcceptedStart(),
                   .olderCopy = in.getOlderCopy()};
  for (uint16_t port : in.getPorts()) op.ports.push_back(port);
  OstRecord record{.index = op.index, .uuid = op.uuid, .host = op.host, .ports = op.ports};
  if (core_->osts.servedElsewhere(record)) {
    auto& there = core_->osts.find(record.index)->record;
    refuse(EBUSY, fmt::format("{} may still be served at {}:{}; two copies of a target must not be",
                              ostName(core_->fsname, record.index), there.host, there.ports[0]));
    co_return;
  }
  auto outcome = co_await core_->commands.run(std::move(op));
  if (outcome.error != 0) {
    refuse(outcome.error, refusalOf(outcome.error, ostName(core_->fsname, record.index)));
    co_return;
  }
  record.chainVersion = outcome.value;
  auto registration =
      core_->osts.registered(record, params.getControl(), decodeSpace(in.getStats()));
  results.setLease(kj::heap<OstLeaseRpc>(core_, record.index, registration));
  results.setChainVersion(record.chainVersion);
  results.setTermMilliseconds(milliseconds(core_->options.ostTerm));
}

kj::Promise<void> MdsRpc::status(StatusContext context) {
  core_->requireServing();
  auto& options = core_->options;
  auto status = context.getResults().initStatus();
  status.setFsname(core_->fsname.c_str());
  auto mdt = status.initMdts(1)[0];
  mdt.setIndex(core_->mdtIndex);
  mdt.setUuid(options.targetUuid.c_str());
  mdt.setAddress(options.address.c_str());
  mdt.setActive(true);
  encodeSpace(options.space(), mdt);

  auto osts = status.initOsts(core_->osts.all().size());
  uint32_t i = 0;
  for (auto& [index, ost] : core_->osts.all()) {
    auto out = osts[i++];
    out.setIndex(index);
    out.setUuid(ost.record.uuid.c_str());
    out.setAddress(ost.record.host.c_str());
    out.setActive(ost.active);
    encodeSpace(ost.space, out);
  }
  encode(core_->osts.map(), status.initMap());

  auto all = core_->sessions.all();
  auto sessions = status.initSessions(all.size());
  for (size_t s = 0; s < all.size(); ++s) {
    sessions[s].setId(all[s]->id.value);
    sessions[s].setEpoch(all[s]->epoch);
    sessions[s].setClientName(all[s]->clientName.c_str());
    sessions[s].setConnected(all[s]->callback != nullptr);
    sessions[s].setMayCache(all[s]->mayCache);
  }
  return kj::READY_NOW;
}

// ---- the changelog ----

kj::Promise<void> MdsRpc::changelog(ChangelogContext context) {
  core_->requireServing();
  auto params = context.getParams();
  auto [changes, last] = core_->changelog.read(params.getFirst(), params.getMost());
  auto results = context.getResults();
  auto out = results.initChanges(changes.size());
  for (size_t i = 0; i < changes.size(); ++i) encode(changes[i], out[i]);
  results.setLast(last);
  return kj::READY_NOW;
}

kj::Promise<void> MdsRpc::changelogUsers(ChangelogUsersContext context) {
  core_->requireServing();
  auto [users, last] = core_->changelog.users();
  auto results = context.getResults();
  auto now = core_->choices.now().seconds;
  auto out = results.initUsers(users.size());
  for (size_t i = 0; i < users.size(); ++i) {
    out[i].setId(users[i].id);
    out[i].setName(users[i].name.c_str());
    out[i].setCleared(users[i].cleared);
    out[i].setIdleSeconds(now - users[i].lastUse.seconds);
  }
  results.setLast(last);
  return kj::READY_NOW;
}

kj::Promise<void> MdsRpc::runRegisterChangelog(RegisterChangelogContext context) {
  Waiting waiting(waiting_);
  auto user = co_await core_->changelog.add(std::string(text(context.getParams().getName())));
  context.getResults().setError(user.errnoOrZero());
  if (user) context.getResults().setUser(*user);
}

kj::Promise<void> MdsRpc::runDeregisterChangelog(DeregisterChangelogContext context) {
  Waiting waiting(waiting_);
  auto done = co_await core_->changelog.remove(context.getParams().getUser());
  context.getResults().setError(done.errnoOrZero());
}

kj::Promise<void> MdsRpc::runClearChangelog(ClearChangelogContext context) {
  Waiting waiting(waiting_);
  auto params = context.getParams();
  auto done = co_await core_->changelog.clear(params.getUser(), params.getUpTo());
  context.getResults().setError(done.errnoOrZero());
}

}  // namespace

rpc::Mds::Client makeMdsRpc(std::shared_ptr<Core> core, std::string peerHost) {
  return kj::heap<MdsRpc>(std::move(core), std::move(peerHost));
}

}  // namespace trainfs::mds
