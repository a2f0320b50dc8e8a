#include "oss/data_worker.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <stdexcept>

#include "trainfs/bulk.h"
#include "trainfs/logging.h"

namespace trainfs::oss {

namespace {

constexpr int kBacklog = 512;
constexpr int kKeepIdleSeconds = 30, kKeepIntervalSeconds = 10, kKeepCount = 3;

std::string peerName(int socket) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), bytes, host, sizeof host, port,
                  sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "unknown peer";
  constexpr std::string_view kMapped = "::ffff:";  // IPv4, on a socket that does both
  std::string_view name(host);
  if (name.starts_with(kMapped)) name.remove_prefix(kMapped.size());
  return "client " + std::string(name) + " port " + port;
}

void tune(int socket) {
  auto set = [&](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kKeepCount);
}

// A descriptor, or -errno.
int listenAt(const addrinfo& place) {
  int fd = socket(place.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  int yes = 1, no = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  // "::" takes IPv4, too, whatever /proc/sys/net/ipv6/bindv6only says.
  if (place.ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (bind(fd, place.ai_addr, place.ai_addrlen) == 0 && listen(fd, kBacklog) == 0) return fd;
  int error = errno;
  close(fd);
  return -error;
}

}  // namespace

Listener listenOn(const std::string& host, uint16_t port) {
  auto fail = [&](const std::string& why) {
    throw std::runtime_error("cannot listen on " + host + " port " + std::to_string(port) + ": " +
                             why);
  };
  bool any = host.empty() || host == "*";
  int fd = -EAFNOSUPPORT;
  // A kernel without IPv6 has none of "::".
  for (const char* each : {any ? "::" : host.c_str(), any ? "0.0.0.0" : nullptr}) {
    if (each == nullptr || (fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL)) break;
    addrinfo hints{}, *found = nullptr;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    int error = getaddrinfo(each, std::to_string(port).c_str(), &hints, &found);
    if (error != 0) fail(gai_strerror(error));
    fd = listenAt(*found);
    freeaddrinfo(found);
  }
  if (fd < 0) fail(std::strerror(-fd));
  sockaddr_storage bound{};
  socklen_t bytes = sizeof bound;
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &bytes);
  // The port is at the same place for IPv4 and IPv6.
  return {fd, ntohs(reinterpret_cast<sockaddr_in*>(&bound)->sin_port)};
}

DataWorker::DataWorker(const WorkerConfig& config, int listener,
                       std::span<const std::unique_ptr<Ost>> osts, SessionTable& sessions,
                       SessionVerifier& verifier)
    : config_(config),
      listener_(listener),
      osts_(osts),
      sessions_(sessions),
      verifier_(verifier),
      buffers_(reactor_),
      executionOver_(reactor_),
      ticked_(reactor_) {
  for (auto& ost : osts_)
    stores_.push_back(std::make_unique<ObjectStore>(reactor_, *ost->index, ost->lease,
                                                    ost->directory, ost->name, config_.limits));
}

DataWorker::~DataWorker() {
  close(listener_);
}

std::optional<uint32_t> DataWorker::findOst(uint32_t chain) const {
  for (uint32_t i = 0; i < osts_.size(); ++i)
    if (osts_[i]->target.index == chain) return i;
  return std::nullopt;
}

bool DataWorker::owns(const ObjectId& object) const {
  return workerOf(object, config_.count) == config_.number;
}

void DataWorker::run() {
  using Clock = std::chrono::steady_clock;
  spawn(accept());
  auto nextTick = Clock::now() + kTick;
  while (!stopping_) {
    auto now = Clock::now();
    if (now >= nextTick) {
      tick(now);
      nextTick = now + kTick;
    }
    reactor_.turn(std::chrono::ceil<std::chrono::milliseconds>(nextTick - now));
  }
  shutDown();
}

void DataWorker::tick(std::chrono::steady_clock::time_point now) {
  for (auto& connection : connections_) connection->closeIfStalled(now);
  for (auto& store : stores_) store->tick();
  publish();
  ticked_.pulse();
}

void DataWorker::publish() {
  uint64_t executing = 0, dirty = 0, open = 0;
  for (auto& connection : connections_) executing += connection->executing();
  for (auto& store : stores_) dirty += store->dirtyObjects(), open += store->openDescriptors();
  statistics_.connections.set(connections_.size());
  statistics_.executing.set(executing);
  statistics_.dirtyObjects.set(dirty);
  statistics_.openDescriptors.set(open);
}

Task<> DataWorker::accept() {
  accepting_ = true;
  while (!stopping_) {
    int socket = co_await reactor_.operate([&](io_uring_sqe* sqe) {
      io_uring_prep_accept(sqe, listener_, nullptr, nullptr, SOCK_CLOEXEC);
    });
    if (socket >= 0) {
      admit(socket);
    } else if (!stopping_ && socket != -EINTR && socket != -ECONNABORTED) {
      spdlog::error("accept: {}", std::strerror(-socket));
      co_await ticked_;  // out of descriptors or memory: later
    }
  }
  accepting_ = false;
}

void DataWorker::admit(int socket) {
  std::string peer = peerName(socket);
  if (stopping_ || connections_.size() >= config_.connectionsMax) {
    spdlog::warn("{}: refused, there are {} connections", peer, connections_.size());
    close(socket);
    return;
  }
  tune(socket);
  connections_.push_back(
      std::make_unique<Connection>(*this, socket, std::move(peer), nextSerial_++));
  spawn(connections_.back()->run());
}

void DataWorker::remove(Connection& connection) {
  connections_.remove_if([&](auto& entry) { return entry.get() == &connection; });
  executionOver_.pulse();
}

Task<> DataWorker::counted(Task<> task) {
  ++tasks_;
  co_await std::move(task);
  --tasks_;
}

template <typename Predicate>
Task<> DataWorker::closeAndWait(Predicate concerned, std::string reason,
                                const Connection* waiting) {
  while (waiting == nullptr || !waiting->closing()) {
    bool busy = false;
    for (auto& connection : connections_) {
      if (!connection->hasSession() || !concerned(*connection)) continue;
      connection->close(reason);
      busy |= connection->executes();
    }
    if (!busy) co_return;
    co_await executionOver_;
  }
}

Task<> DataWorker::replaceOlder(const Connection& connection) {
  auto older = [session = connection.session(), lane = connection.lane(),
                serial = connection.serial()](const Connection& other) {
    return other.session() == session && other.lane() == lane && other.serial() < serial;
  };
  co_await closeAndWait(older, "replaced by a newer one", &connection);
}

Task<> DataWorker::fence(SessionId session, uint32_t epoch) {
  auto fenced = [=](const Connection& other) {
    return other.session() == session && other.epoch() <= epoch;
  };
  co_await closeAndWait(fenced, "its session was fenced", nullptr);
}

Task<> DataWorker::destroyOne(ObjectStore& store, ObjectId object, Permits& permits,
                              Status& status) {
  auto destroyed = co_await store.destroy(object);
  if (!destroyed) status = destroyed;
  permits.release();
}

Task<Status> DataWorker::destroy(uint32_t ost, std::vector<ObjectId> objects) {
  Status status = Done{};
  Permits permits(reactor_, kChangingMax);
  for (auto& object : objects) {
    co_await permits.acquire();
    spawn(destroyOne(*stores_[ost], object, permits, status));
  }
  for (uint32_t i = 0; i < kChangingMax; ++i) co_await permits.acquire();
  co_return status;
}

namespace {

Task<Status> cutDurably(ObjectStore& store, DataWorker::Cut cut, uint32_t registration) {
  auto figures = co_await store.stat(cut.object);
  if (!figures) co_return figures.error();
  if (figures->sizeBytes > cut.sizeBytes) {
    auto existed = co_await store.truncate(cut.object, cut.sizeBytes, registration);
    if (!existed) co_return existed.error();
  }
  // Also what is not longer: an earlier call may have cut it and come no further.
  auto existed = co_await store.sync(cut.object);
  co_return existed ? Status(Done{}) : Status(existed.error());
}

}  // namespace

Task<> DataWorker::cutOne(ObjectStore& store, Cut cut, uint32_t registration, Permits& permits,
                          Status& status) {
  status = co_await cutDurably(store, cut, registration);
  permits.release();
}

Task<std::vector<Status>> DataWorker::truncate(uint32_t ost, std::vector<Cut> cuts,
                                               uint32_t registration) {
  std::vector<Status> outcomes(cuts.size(), Done{});
  Permits permits(reactor_, kChangingMax);
  for (size_t i = 0; i < cuts.size(); ++i) {
    co_await permits.acquire();
    spawn(cutOne(*stores_[ost], cuts[i], registration, permits, outcomes[i]));
  }
  for (uint32_t i = 0; i < kChangingMax; ++i) co_await permits.acquire();
  co_return outcomes;
}

Task<> DataWorker::cleanStores() {
  for (size_t i = 0; i < stores_.size(); ++i) {
    if (co_await stores_[i]->cleanAll()) continue;
    osts_[i]->unclean = true;
    spdlog::warn("{}: {} objects could not be made clean", osts_[i]->name,
                 stores_[i]->dirtyObjects() + stores_[i]->failedObjects());
  }
  cleaned_ = true;
}

void DataWorker::shutDown() {
  using Clock = std::chrono::steady_clock;
  shutdown(listener_, SHUT_RDWR);
  for (auto& connection : connections_) connection->finish();
  auto deadline = Clock::now() + kFinishMax;
  reactor_.runUntil([&] {
    if (Clock::now() > deadline)
      for (auto& connection : connections_) connection->close("this server stops");
    return connections_.empty();
  });
  ticked_.pulse();
  reactor_.runUntil([&] { return !accepting_ && tasks_ == 0; });
  spawn(cleanStores());
  reactor_.runUntil([&] { return cleaned_; });
}

WorkerThread::WorkerThread(const WorkerConfig& config, int listener,
                           std::span<const std::unique_ptr<Ost>> osts, SessionTable& sessions,
                           SessionVerifier& verifier) {
  std::promise<DataWorker*> ready;
  thread_ = std::thread([&, config, listener, osts] {
    std::unique_ptr<DataWorker> worker;
    try {
      worker = std::make_unique<DataWorker>(config, listener, osts, sessions, verifier);
    } catch (...) {
      ready.set_exception(std::current_exception());
      return;
    }
    ready.set_value(worker.get());
    worker->run();
  });
  try {
    worker_ = ready.get_future().get();
  } catch (...) {
    thread_.join();
    throw;
  }
}

void WorkerThread::post(std::function<void(DataWorker&)> call) {
  worker_->reactor().post([worker = worker_, call = std::move(call)] { call(*worker); });
}

void WorkerThread::beginStop() {
  if (stopping_) return;
  stopping_ = true;
  post([](DataWorker& worker) { worker.stop(); });
}

void WorkerThread::stop() {
  if (!thread_.joinable()) return;
  beginStop();
  thread_.join();
}

}  // namespace trainfs::oss
