#include "mds/server.h"

#include <arpa/inet.h>
#include <capnp/rpc-twoparty.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "mds/mds_rpc.h"
#include "mds/peer_stream.h"
#include "trainfs/logging.h"

namespace trainfs::mds {

namespace {

constexpr kj::Duration kPublishEvery = 1 * kj::SECONDS;

// The numeric address of the other end; IPv4 as such, also on a socket that does both.
std::string peerHost(kj::AsyncIoStream& stream) {
  sockaddr_storage address{};
  kj::uint length = sizeof address;
  stream.getpeername(reinterpret_cast<sockaddr*>(&address), &length);
  char name[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in&>(address).sin_addr, name, sizeof name);
  } else if (address.ss_family == AF_INET6) {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address).sin6_addr;
    bool mapped = IN6_IS_ADDR_V4MAPPED(&v6);
    if (mapped)
      inet_ntop(AF_INET, v6.s6_addr + 12, name, sizeof name);
    else
      inet_ntop(AF_INET6, &v6, name, sizeof name);
  }
  return name;
}

constexpr kj::Duration kTellRefusalsEvery = 10 * kj::SECONDS;

// A peer whose machine is gone never closes its connection: the kernel finds out. (kj has set
// TCP_NODELAY.)
void keepAlive(kj::AsyncIoStream& stream) {
  auto set = [&](int level, int option, int value) {
    stream.setsockopt(level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 20);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
}

}  // namespace

struct Server::Connection {
  Connection(kj::Own<kj::AsyncIoStream> given, std::shared_ptr<Core> core, kj::Timer& timer,
             PeerStream::Patience patience)
      : peer(peerHost(*given)),
        stream(kj::mv(given)),
        messages(*stream, timer, patience),
        network(messages, capnp::rpc::twoparty::Side::SERVER),
        system(capnp::makeRpcServer(network, makeMdsRpc(std::move(core), peer))) {
    // Calls that wait for their answers; a list of open files is the largest.
    system.setFlowLimit(kMessageBytesMax / sizeof(capnp::word));
  }

  // Until the connection is over; an exception says why, if the peer is to blame.
  kj::Promise<void> run() {
    co_await network.onDisconnect().exclusiveJoin(messages.watch(network));
    KJ_IF_MAYBE (failure, messages.failure()) kj::throwFatalException(kj::cp(*failure));
  }

  std::string peer;
  kj::Own<kj::AsyncIoStream> stream;
  PeerStream messages;
  capnp::TwoPartyVatNetwork network;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> system;
};

Server::Server(Store& store, Log& log, kj::Timer& timer, kj::Own<kj::ConnectionReceiver> listener,
               ServerOptions options)
    : listener_(kj::mv(listener)),
      timer_(timer),
      core_(std::make_shared<Core>(store, log, timer, std::move(options))),
      accepting_(nullptr),
      publishing_(nullptr),
      tasks_(*this) {
  accepting_ = acceptForever().eagerlyEvaluate([](kj::Exception&& e) {
    spdlog::critical("cannot accept connections any more: {}", e.getDescription().cStr());
  });
  publishing_ = publishForever().eagerlyEvaluate(nullptr);
}

// Figures that others read without waiting for this loop.
kj::Promise<void> Server::publishForever() {
  for (;;) {
    auto& figures = core_->statistics;
    uint64_t executing = 0, serving = 0;
    for (auto& session : core_->sessions.all()) executing += session->requestsInFlight;
    for (auto& [index, ost] : core_->osts.all()) serving += ost.active;
    figures.sessions.set(core_->sessions.size());
    figures.connections.set(connections_);
    figures.executing.set(executing);
    figures.locks.set(core_->locks.table().locks());
    figures.lockWaits.set(core_->locks.table().waiting());
    figures.osts.set(core_->osts.all().size());
    figures.ostsServing.set(serving);
    co_await timer_.afterDelay(kPublishEvery);
  }
}

Server::~Server() noexcept(false) {
  stop();
}

void Server::stop() {
  accepting_ = nullptr;
  publishing_ = nullptr;
  core_->stop();
}

kj::Promise<void> Server::acceptForever() {
  for (;;) {
    kj::Own<kj::AsyncIoStream> stream;
    kj::Maybe<kj::Exception> failure;
    try {
      stream = co_await listener_->accept();
    } catch (const kj::Exception& e) {
      failure = kj::cp(e);
    }
    KJ_IF_MAYBE (e, failure) {
      // Out of descriptors, or a peer that was gone again: both pass.
      spdlog::error("a connection was not accepted: {}", e->getDescription().cStr());
      co_await timer_.afterDelay(core_->options.retryDelay);
      continue;
    }
    if (connections_ < core_->options.connectionsMax)
      tasks_.add(serve(kj::mv(stream)));
    else
      noteRefusal(*stream);
  }
}

// One line for as many as come at once.
void Server::noteRefusal(kj::AsyncIoStream& stream) {
  ++refusals_;
  if (timer_.now() < nextRefusalTold_) return;
  spdlog::warn("refused {} connections, the last one of {}: there are {} already, the most allowed",
               refusals_, peerHost(stream), connections_);
  nextRefusalTold_ = timer_.now() + kTellRefusalsEvery;
  refusals_ = 0;
}

kj::Promise<void> Server::serve(kj::Own<kj::AsyncIoStream> stream) {
  ++connections_;
  KJ_DEFER(--connections_);
  std::string peer;
  try {
    keepAlive(*stream);
    auto& options = core_->options;
    // Every peer has something to say several times in a term.
    PeerStream::Patience patience{options.greetingMax,
                                  kj::max(options.idleMax, options.clientTerm)};
    Connection connection(kj::mv(stream), core_, timer_, patience);
    peer = connection.peer;
    co_await connection.run();
  } catch (const kj::Exception& e) {
    spdlog::warn("the connection of {} is closed: {}", peer, e.getDescription().cStr());
  }
}

void Server::taskFailed(kj::Exception&& exception) {
  spdlog::warn("a connection failed: {}", exception.getDescription().cStr());
}

}  // namespace trainfs::mds
