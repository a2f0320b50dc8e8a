#include "oss/control.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "oss/control_rpc.h"
#include "trainfs/logging.h"
#include "trainfs/space.h"

namespace trainfs::oss {

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

std::string localHostOf(kj::AsyncIoStream& stream) {
  sockaddr_storage address{};
  kj::uint bytes = sizeof address;
  stream.getsockname(reinterpret_cast<sockaddr*>(&address), &bytes);
  char host[NI_MAXHOST];
  if (getnameinfo(reinterpret_cast<sockaddr*>(&address), bytes, host, sizeof host, nullptr, 0,
                  NI_NUMERICHOST) != 0)
    return "";  // the MDS takes the address that it sees
  return host;
}

kj::Promise<void> noteAccepted(ObjectIndex& index) {
  uint64_t accepted = index.start().current;
  auto noted = kj::newPromiseAndCrossThreadFulfiller<void>();
  auto fulfiller =
      std::make_shared<kj::Own<kj::CrossThreadPromiseFulfiller<void>>>(kj::mv(noted.fulfiller));
  index.noteAccepted([fulfiller](int) { (*fulfiller)->fulfill(); });
  co_await noted.promise;
  KJ_REQUIRE(index.start().accepted == accepted, "cannot note that the MDS accepted this start");
}

std::string portList(const std::vector<uint16_t>& ports) {
  std::string list;
  for (uint16_t port : ports) list += (list.empty() ? "" : ",") + std::to_string(port);
  return list;
}

}  // namespace

Control::Control(kj::Network& network, kj::Timer& timer, Config config,
                 std::span<const std::unique_ptr<Ost>> osts, SessionTable& sessions)
    : network_(network),
      timer_(timer),
      config_(std::move(config)),
      osts_(osts),
      sessions_(sessions),
      leases_(osts.size()),
      tasks_(*this) {}

Control::~Control() = default;

kj::Promise<bool> Control::run(std::span<const std::unique_ptr<WorkerThread>> workers,
                               kj::Promise<void> stop) {
  workers_ = workers;
  auto fatal = kj::newPromiseAndFulfiller<void>();
  fatal_ = kj::mv(fatal.fulfiller);
  tasks_.add(answerChecks());
  for (uint32_t number = 0; number < osts_.size(); ++number) tasks_.add(keepRegistered(number));
  co_return co_await stop.then([] { return true; }).exclusiveJoin(fatal.promise.then([] {
    return false;
  }));
}

void Control::taskFailed(kj::Exception&& exception) {
  // Every task handles what a peer or the network can do; what is left is a bug.
  spdlog::critical("control: {}", exception.getDescription().cStr());
  fatal_->fulfill();
}

kj::Promise<void> Control::keepRegistered(uint32_t number) {
  auto& ost = *osts_[number];
  auto& nodes = ost.target.mgsNodes;
  kj::Duration backoff = kBackoffLeast;
  for (size_t attempt = 0;; ++attempt) {
    uint32_t before = ost.lease.registration();
    std::string node = nodes[attempt % nodes.size()], why;
    try {
      co_await holdRegistration(number, node);
    } catch (const kj::Exception& exception) {
      why = exception.getDescription().cStr();
    }
    bool served = ost.lease.registration() != before;
    leases_[number].client.reset();
    if (served || !leases_[number].reported)
      spdlog::warn("{}: no connection with the MDS at {}: {}; trying on", ost.name, node, why);
    else
      spdlog::debug("{}: MDS at {}: {}", ost.name, node, why);
    leases_[number].reported = true;
    backoff = served ? kBackoffLeast : std::min(backoff * 2, kBackoffMost);
    co_await timer_.afterDelay(backoff);
  }
}

// Returns only by an exception.
kj::Promise<void> Control::holdRegistration(uint32_t number, std::string node) {
  HostPort place;
  KJ_REQUIRE(parseHostPort(node, kDefaultMdsPort, place), "malformed MDS address", node.c_str());
  auto address = co_await timer_.timeoutAfter(
      kConnectMax, network_.parseAddress(place.host.c_str(), place.port));
  auto stream = co_await timer_.timeoutAfter(kConnectMax, address->connect());
  std::string localHost = localHostOf(*stream);
  capnp::TwoPartyClient client(*stream);
  co_await registerOst(number, client.bootstrap().castAs<rpc::Mds>(), std::move(localHost));
  while (true) {
    co_await timer_.afterDelay(kRenewEvery).exclusiveJoin(client.onDisconnect());
    co_await renew(number);
  }
}

kj::Promise<void> Control::registerOst(uint32_t number, rpc::Mds::Client mds,
                                       std::string localHost) {
  auto& ost = *osts_[number];
  auto helloRequest = mds.helloRequest();
  helloRequest.setProtocolVersion(rpc::PROTOCOL_VERSION);
  auto hello = co_await timer_.timeoutAfter(kCallMax, helloRequest.send());
  KJ_REQUIRE(hello.getProtocolVersion() == rpc::PROTOCOL_VERSION,
             "the MDS speaks another version of the protocol", hello.getProtocolVersion());

  std::string host = config_.advertisedHost.empty() ? localHost : config_.advertisedHost;
  auto sent = std::chrono::steady_clock::now();
  auto response = co_await offerStart(number, mds, host);
  while (!ost.index->accepted()) {
    co_await noteAccepted(*ost.index);
    if (ost.index->accepted()) break;
    sent = std::chrono::steady_clock::now();
    response = co_await offerStart(number, mds, host);
  }
  Lease& lease = leases_[number];
  lease.client = response.getLease();
  lease.termMilliseconds = response.getTermMilliseconds();
  lease.reported = false;
  ost.chainVersion = response.getChainVersion();
  ost.lease.begin(endOfLease(number, sent));
  sessions_.clear();
  spdlog::info("serving {} on {}:{}", ost.name, host, portList(config_.ports));
}

// Returns only if the MDS accepts it.
kj::Promise<Control::Registered> Control::offerStart(uint32_t number, rpc::Mds::Client mds,
                                                     std::string host) {
  auto& ost = *osts_[number];
  auto request = mds.registerOstRequest();
  auto registration = request.initRequest();
  registration.setFsname(ost.target.fsname.c_str());
  registration.setIndex(ost.target.index);
  registration.setUuid(ost.target.uuid.c_str());
  registration.setHost(host.c_str());
  auto ports = registration.initPorts(config_.ports.size());
  for (size_t i = 0; i < config_.ports.size(); ++i) ports.set(i, config_.ports[i]);
  KJ_REQUIRE(fillStats(number, registration.initStats()), "statvfs failed");
  registration.setStart(ost.index->start().current);
  registration.setAcceptedStart(ost.index->start().accepted);
  registration.setOlderCopy(config_.acceptOlderCopy);
  request.setControl(makeOssControl(number, ost.lease, sessions_, workers_));

  auto response = co_await timer_.timeoutAfter(kCallMax, request.send());
  if (response.getError() == EBUSY)  // by a server that may be gone when its lease is over
    kj::throwFatalException(KJ_EXCEPTION(OVERLOADED, response.getMessage().cStr()));
  if (response.getError() != 0) {
    spdlog::critical("{}: the MDS refuses this target: {}", ost.name, response.getMessage().cStr());
    fatal_->fulfill();
    co_await kj::Promise<void>(kj::NEVER_DONE);
  }
  co_return kj::mv(response);
}

kj::Promise<void> Control::renew(uint32_t number) {
  auto request = leases_[number].client->renewRequest();
  KJ_REQUIRE(fillStats(number, request.initStats()), "statvfs failed");
  auto sent = std::chrono::steady_clock::now();
  auto response = co_await timer_.timeoutAfter(kCallMax, request.send());
  osts_[number]->chainVersion = response.getChainVersion();
  osts_[number]->lease.extendTo(endOfLease(number, sent));
}

// A quarter of the term is left for requests that were admitted just before its end.
SteadyTime Control::endOfLease(uint32_t number, SteadyTime sent) const {
  std::chrono::milliseconds term(leases_[number].termMilliseconds);
  return sent + term * 3 / 4;
}

bool Control::fillStats(uint32_t number, rpc::OstStats::Builder stats) {
  auto& ost = *osts_[number];
  auto space = spaceOf(ost.directory);
  if (!space) {
    spdlog::error("{}: statvfs of {}: {}", ost.name, ost.directory,
                  std::strerror(space.error().code()));
    return false;
  }
  encodeSpace(*space, stats);
  return true;
}

void Control::check(uint32_t ost, SessionId session, uint32_t epoch,
                    std::function<void(Verdict)> done) {
  {
    std::lock_guard lock(mutex_);
    if (!ended_) {
      checks_.push_back({ost, session, epoch, std::move(done)});
      if (wake_.get() != nullptr) wake_->fulfill();
      wake_ = nullptr;
      return;
    }
  }
  done(Verdict::kUnknown);
}

kj::Promise<void> Control::answerChecks() {
  while (true) {
    auto waiting = kj::newPromiseAndCrossThreadFulfiller<void>();
    std::vector<Check> checks;
    {
      std::lock_guard lock(mutex_);
      checks.swap(checks_);
      if (checks.empty()) wake_ = kj::mv(waiting.fulfiller);
    }
    if (checks.empty()) co_await waiting.promise;
    for (auto& check : checks) tasks_.add(answer(kj::mv(check)));
  }
}

kj::Promise<void> Control::answer(Check check) {
  Verdict verdict = Verdict::kUnknown;
  // Also when this task is given up.
  KJ_DEFER(check.done(verdict));
  auto& lease = leases_[check.ost].client;
  if (!lease) co_return;
  try {
    auto request = lease->checkSessionRequest();
    request.setSession(check.session.value);
    request.setEpoch(check.epoch);
    auto response = co_await timer_.timeoutAfter(kCheckMax, request.send());
    verdict = response.getValid() ? Verdict::kValid : Verdict::kInvalid;
  } catch (const kj::Exception& exception) {
    spdlog::warn("asking the MDS about session {:x}: {}", check.session.value,
                 exception.getDescription().cStr());
  }
}

void Control::endChecks() {
  tasks_.clear();
  std::vector<Check> checks;
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    checks.swap(checks_);
    wake_ = nullptr;
  }
  for (auto& check : checks) check.done(Verdict::kUnknown);
}

}  // namespace trainfs::oss
