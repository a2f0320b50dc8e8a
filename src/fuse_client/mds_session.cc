#include "fuse_client/mds_session.h"

#include <kj/debug.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "fuse_client/mds_wire.h"

namespace trainfs::client {

namespace {

constexpr auto kConnectPatience = 3 * kj::SECONDS;  // per server and step
constexpr auto kRetryDelayMin = 50 * kj::MILLISECONDS;
constexpr auto kRetryDelayMax = 1 * kj::SECONDS;
constexpr size_t kLingeringMax = 4'096;

const char* words(const kj::Exception& exception) {
  return exception.getDescription().cStr();
}

[[noreturn]] void refuse(kj::String reason) {
  kj::throwFatalException(
      kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__, kj::mv(reason)));
}

std::string nameOf(const HostPort& server) {
  return server.host + ":" + std::to_string(server.port);
}

}  // namespace

// What the MDS calls.
class MdsSession::Callback final : public rpc::ClientCallback::Server {
 public:
  // `lastWord`: what this callback was told last of caching. A call may be delivered before the
  // answer to the request that brought the callback to the MDS, though it was made after it: then
  // it is the call that counts.
  Callback(MdsSession& session, std::shared_ptr<std::optional<bool>> lastWord)
      : session_(session), lastWord_(std::move(lastWord)) {}

  kj::Promise<void> recall(RecallContext context) override {
    *lastWord_ = false;
    auto paf = kj::newPromiseAndFulfiller<void>();
    auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
    session_.events_.recalled([&inbox = session_.inbox_, fulfiller] {
      inbox.post([fulfiller] { (*fulfiller)->fulfill(); });
    });
    co_await paf.promise;
    auto opens = session_.events_.openFiles(MdsEvents::Told::kMore);
    encodeOpens(opens, context.getResults().initOpens(opens.size()));
  }
  kj::Promise<void> mayCache(MayCacheContext) override {
    *lastWord_ = true;
    session_.events_.mayCache();
    return kj::READY_NOW;
  }
  kj::Promise<void> mapChanged(MapChangedContext context) override {
    session_.events_.mapChanged(decodeMap(context.getParams().getMap()));
    return kj::READY_NOW;
  }

 private:
  MdsSession& session_;
  std::shared_ptr<std::optional<bool>> lastWord_;
};

MdsSession::MdsSession(const MdsClientOptions& options, MdsEvents& events, MdsInbox& inbox,
                       kj::AsyncIoContext& io, FirstSession onFirst)
    : options_(options),
      events_(events),
      inbox_(inbox),
      network_(io.provider->getNetwork()),
      timer_(io.provider->getTimer()),
      onFirst_(std::move(onFirst)),
      tasks_(*this) {
  tasks_.add(stayConnected());
}

MdsSession::~MdsSession() noexcept(false) {}

void MdsSession::taskFailed(kj::Exception&& exception) {
  spdlog::critical("the MDS thread failed: {}", kj::str(exception).cStr());
  std::abort();  // a bug: going on would leave callers without an answer for ever
}

// ---- connecting ----

kj::Promise<void> MdsSession::stayConnected() {
  bool lost = false;
  while (!ended_) {
    auto connection = co_await findServer();
    if (lost) spdlog::info("connected to the MDS again");
    co_await renewUntilLost(*connection);
    connection_ = nullptr;
    connection->breakOff();
    lost = true;
  }
}

void MdsSession::Connection::breakOff() {
  try {
    stream->abortRead();
  } catch (const kj::Exception&) {
    // The socket is closed already, which the calls know, too.
  }
}

kj::Promise<kj::Own<MdsSession::Connection>> MdsSession::findServer() {
  auto delay = kRetryDelayMin;
  bool told = false;
  for (;;) {
    std::string failure;
    for (auto& server : options_.servers) {
      try {
        auto connection = co_await connectTo(server);
        co_await openSession(*connection);
        co_return kj::mv(connection);
      } catch (const kj::Exception& exception) {
        failure += (failure.empty() ? "" : "; ") + nameOf(server) + ": " + words(exception);
      }
    }
    if (onFirst_) onFirst_(failure);
    if (!told) spdlog::warn("no MDS answers, looking on: {}", failure);
    told = true;
    co_await timer_.afterDelay(delay);
    delay = kj::min(delay * 2, kRetryDelayMax);
  }
}

kj::Promise<kj::Own<MdsSession::Connection>> MdsSession::connectTo(const HostPort& server) {
  auto address = co_await timer_.timeoutAfter(
      kConnectPatience, network_.parseAddress(server.host.c_str(), server.port));
  auto stream = co_await timer_.timeoutAfter(kConnectPatience, address->connect());
  int yes = 1;
  stream->setsockopt(IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  auto connection = kj::refcounted<Connection>(kj::mv(stream));
  auto request = connection->mds.helloRequest();
  request.setProtocolVersion(rpc::PROTOCOL_VERSION);
  auto hello = co_await timer_.timeoutAfter(kConnectPatience, request.send());
  if (hello.getProtocolVersion() != rpc::PROTOCOL_VERSION)
    refuse(kj::str("it speaks version ", hello.getProtocolVersion(), " of the protocol, not ",
                   rpc::PROTOCOL_VERSION));
  if (hello.getFsname() != options_.fsname.c_str())
    refuse(kj::str("it serves the file system '", hello.getFsname(), "', not '",
                   options_.fsname.c_str(), "'"));
  co_return kj::mv(connection);
}

kj::Promise<void> MdsSession::openSession(Connection& connection) {
  for (;;) {
    auto call = connection.mds.openSessionRequest();
    auto request = call.initRequest();
    request.setFsname(options_.fsname);
    request.setClientName(options_.clientName);
    auto lastWord = std::make_shared<std::optional<bool>>();
    request.setCallback(kj::heap<Callback>(*this, lastWord));
    request.setResumeId(sessionId_);
    request.setResumeEpoch(epoch_);
    request.setResumption(++resumptions_);
    request.setReadOnly(options_.readOnly);
    auto opens = events_.openFiles(MdsEvents::Told::kAll);
    encodeOpens(opens, request.initOpens(opens.size()));
    auto locks = events_.heldLocks();
    encodeLocks(locks, request.initLocks(locks.size()));
    request.setCaching(events_.mayBeCaching());
    auto asked = BootClock::now();
    // The server may have to wait, up to a lease's term, for another client to give up its caches.
    auto response = co_await timer_.timeoutAfter(term_ * 2 + kConnectPatience, call.send());
    auto opened = response.getOpened();
    bool fresh = sessionId_ == 0;
    if (opened.getError() == ESTALE && !fresh) {
      spdlog::warn("the session {} was evicted by the MDS; opening a new one", sessionId_);
      sessionId_ = epoch_ = 0;
      continue;
    }
    if (opened.getError() != 0)
      refuse(kj::str("it refuses the session: ", strerror(opened.getError()), " (",
                     opened.getMessage(), ")"));
    adopt(connection, opened, fresh, lastWord->value_or(opened.getMayCache()), asked);
    co_return;
  }
}

void MdsSession::adopt(Connection& connection, rpc::SessionOpened::Reader opened, bool fresh,
                       bool mayCache, BootClock::time_point asked) {
  auto map = decodeMap(opened.getMap());
  connection.session = opened.getSession();
  sessionId_ = opened.getId();
  epoch_ = opened.getEpoch();
  term_ = kj::max(opened.getTermMilliseconds(), 100u) * kj::MILLISECONDS;
  if (fresh) {
    ++incarnation_;
    slots_.restart();
  }
  connection_ = kj::addRef(connection);
  if (options_.statistics != nullptr) ++options_.statistics->mdsConnections;
  events_.mapChanged(std::move(map));
  events_.sessionOpened(SessionId{sessionId_}, epoch_, fresh, mayCache,
                        decodeInodes(opened.getRemoved()));
  noteHeard(asked);
  if (onFirst_) {
    onFirst_(std::nullopt);
    onFirst_ = nullptr;
  }
  auto waiting = std::move(awaitConnection_);
  awaitConnection_.clear();
  for (auto& fulfiller : waiting) fulfiller->fulfill();
}

kj::Promise<void> MdsSession::renewUntilLost(Connection& connection) {
  try {
    for (;;) {
      auto paf = kj::newPromiseAndFulfiller<void>();
      renewNow_ = kj::mv(paf.fulfiller);
      co_await timer_.afterDelay(term_ / 4)
          .exclusiveJoin(kj::mv(paf.promise))
          .exclusiveJoin(connection.rpc.onDisconnect().then([]() -> kj::Promise<void> {
            return KJ_EXCEPTION(DISCONNECTED, "the connection ended");
          }));
      auto asked = BootClock::now();
      auto renewed =
          co_await timer_.timeoutAfter(term_ / 2, connection.session->renewRequest().send());
      if (!renewed.getValid()) break;  // resuming will say what became of the session
      noteHeard(asked);
    }
    if (!ended_) spdlog::warn("the MDS does not know the session any more");
  } catch (const kj::Exception& exception) {
    if (!ended_) spdlog::warn("lost the MDS: {}", words(exception));
  }
}

// The MDS's term began when it got what was sent then, or later. The last quarter is for what goes
// on meanwhile: until the kernel has dropped what it caches, that is in use.
void MdsSession::noteHeard(BootClock::time_point sent) {
  auto until = sent + std::chrono::nanoseconds(term_ * 3 / 4 / kj::NANOSECONDS);
  events_.trusted(until);
  auto left = std::max<int64_t>((until - BootClock::now()).count(), 0) * kj::NANOSECONDS;
  lapse_ = timer_.afterDelay(left)
               .then([this] { events_.lapsed(); })
               .eagerlyEvaluate([this](kj::Exception&& e) { taskFailed(kj::mv(e)); });
}

void MdsSession::check() {
  if (renewNow_.get() != nullptr) renewNow_->fulfill();
}

// It may be lost again before who waits for it has its turn: look, and wait once more.
kj::Promise<void> MdsSession::nextConnection() {
  auto paf = kj::newPromiseAndFulfiller<void>();
  awaitConnection_.push_back(kj::mv(paf.fulfiller));
  return kj::mv(paf.promise);
}

// ---- calls ----

void MdsSession::submit(std::unique_ptr<MdsCall> call) {
  tasks_.add(run(std::move(call)));
}

kj::Promise<void> MdsSession::run(std::unique_ptr<MdsCall> call) {
  if (!call->mutation) {
    bool turn = call->touched.empty() || co_await comesToItsTurn(*call);
    if (turn) co_await attempts(*call);
    co_return;
  }
  ++mutations_;
  if (co_await comesToItsTurn(*call)) {
    call->slot = co_await slots_.take(call->urgent);
    co_await attempts(*call);
    slots_.give(call->slot);
    if (call->givenUp) givenUp_.settled(call->touched);
  }
  if (--mutations_ == 0 && quiet_.get() != nullptr) quiet_->fulfill();
}

// False: given up meanwhile, never sent.
kj::Promise<bool> MdsSession::comesToItsTurn(MdsCall& call) {
  auto deadline = timer_.now() + options_.softTimeout.count() * kj::MILLISECONDS;
  while (givenUp_.touchAny(call.touched)) {  // on soft mounts only
    if (timer_.now() >= deadline) {
      call.fail(EIO);
      co_return false;
    }
    co_await givenUp_.nextSettled().exclusiveJoin(timer_.atTime(deadline));
  }
  co_return true;
}

void MdsSession::giveUp(MdsCall& call) {
  if (call.givenUp) return;
  call.givenUp = true;
  givenUp_.add(call.touched);
  call.fail(EIO);
}

void MdsSession::noteAnswered(const MdsCall& call, kj::TimePoint started) {
  if (options_.statistics == nullptr || call.waits) return;
  auto& timer = call.mutation ? options_.statistics->mdsChanges : options_.statistics->mdsQuestions;
  auto took = std::chrono::nanoseconds((timer_.now() - started) / kj::NANOSECONDS);
  timer.add(took, false);
}

// Sends the call until it is answered. A call that fails while the connection lives (the server
// cannot answer now) is sent again after a while; with a lost connection, after the session is
// resumed.
kj::Promise<void> MdsSession::attempts(MdsCall& call) {
  auto started = timer_.now();
  auto delay = kRetryDelayMin;
  uint32_t resent = 0;
  uint64_t sentIn = 0;  // incarnation of the session it was sent in; 0: not sent
  bool lingering = false;
  KJ_DEFER(lingering_ -= lingering);
  for (;;) {
    while (connection_.get() == nullptr) {
      if (!options_.soft || lingering || call.givenUp) {
        co_await nextConnection();
        continue;
      }
      auto patience = options_.softTimeout.count() * kj::MILLISECONDS - (timer_.now() - started);
      bool inTime =
          co_await nextConnection()
              .then([] { return true; })
              .exclusiveJoin(
                  timer_.afterDelay(kj::max(patience, 0 * kj::SECONDS)).then([] { return false; }));
      if (inTime) continue;
      if (sentIn != 0 && call.mutation) {
        giveUp(call);  // it may happen, and keeps its slot until its fate is known
      } else {
        call.fail(EIO);
        if (!mayLinger(call, lingering)) co_return;
      }
    }
    if (call.mutation && sentIn != 0 && sentIn != incarnation_) {
      call.fail(EIO);  // sent in a session that is no more: whether it happened cannot be known
      co_return;
    }
    if (sentIn != incarnation_ && call.mutation) call.sequence = slots_.nextSequence(call.slot);
    sentIn = incarnation_;
    bool disconnected;
    auto sentAt = timer_.now();
    try {
      auto connection = kj::addRef(*connection_);
      if (options_.statistics != nullptr && resent++ != 0) ++options_.statistics->mdsResent;
      co_await call.send(*connection->session);
      noteAnswered(call, started);
      co_return;
    } catch (const kj::Exception& exception) {
      disconnected = exception.getType() == kj::Exception::Type::DISCONNECTED;
      if (exception.getType() == kj::Exception::Type::UNIMPLEMENTED) {
        call.fail(EOPNOTSUPP);
        co_return;
      }
      if (!disconnected && delay == kRetryDelayMin)
        spdlog::warn("the MDS cannot answer now, asking again: {}", words(exception));
    }
    // What a `soft` mount bears is silence of the server, not of other clients.
    if (call.waits && timer_.now() - sentAt > kRetryDelayMax) started = timer_.now();
    if (!disconnected) check();
    if (options_.soft && timer_.now() - started > options_.softTimeout.count() * kj::MILLISECONDS) {
      if (call.mutation) {
        giveUp(call);
      } else {
        call.fail(EIO);
        if (!mayLinger(call, lingering)) co_return;
      }
    }
    // Also after a lost connection, which the other end of it may learn of a little later.
    co_await timer_.afterDelay(disconnected ? kRetryDelayMin : delay);
    delay = kj::min(delay * 2, kRetryDelayMax);
  }
}

// What failed is sent all the same, if it lingers: few enough do.
bool MdsSession::mayLinger(const MdsCall& call, bool& lingering) {
  if (!call.lingers || lingering) return lingering;
  if (lingering_ == kLingeringMax) {
    spdlog::error("a lock may stay at the MDS until this is unmounted: {} calls have failed so far",
                  kLingeringMax);
    return false;
  }
  ++lingering_;
  return lingering = true;
}

kj::Promise<void> MdsSession::end() {
  if (mutations_ != 0) {
    auto paf = kj::newPromiseAndFulfiller<void>();
    quiet_ = kj::mv(paf.fulfiller);
    co_await paf.promise;
  }
  if (sessionId_ == 0) co_return;
  while (connection_.get() == nullptr) co_await nextConnection();
  ended_ = true;
  co_await connection_->session->endRequest().send().ignoreResult();
}

}  // namespace trainfs::client
