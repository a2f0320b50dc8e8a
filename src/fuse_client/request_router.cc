#include "fuse_client/request_router.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>

#include "fuse_client/data_worker.h"
#include "fuse_client/oss_connection.h"

namespace trainfs::client {

namespace {

// Lanes of one OST in one client: what the bits of BulkHeader::lane below the OST's index count. An
// OSS may serve several OSTs on one port, and a lane must mean one connection there.
constexpr uint32_t kLanesMax = 128;

}  // namespace

RequestRouter::RequestRouter(const DataClientOptions& options) : options_(options) {
  for (uint32_t i = 0; i < options_.workers; ++i)
    workers_.push_back(std::make_unique<DataWorker>(*this, options_));
}

RequestRouter::~RequestRouter() {
  stop();
}

void RequestRouter::start() {
  for (auto& worker : workers_) worker->start();
}

void RequestRouter::stop() {
  for (auto& worker : workers_) worker->beginStop();
  for (auto& worker : workers_) worker->join();
  // A completion on one worker may have asked something new of another that was through already.
  bool more = true;
  while (more) {
    more = false;
    for (auto& worker : workers_) more |= worker->failLeftovers();
  }
}

void RequestRouter::setMap(ClusterMap map) {
  {
    std::unique_lock lock(endpointsMutex_);
    if (map.version < mapVersion_) return;  // overtaken on its way here
    mapVersion_ = map.version;
    for (const OstAddress& ost : map.osts) updateEndpoint(ost);
  }
  for (auto& worker : workers_) worker->unpark();
}

void RequestRouter::updateEndpoint(const OstAddress& ost) {
  if (ost.ports.empty())
    return;  // not registered yet, or not again: its last address is the best guess
  Endpoint& endpoint = endpoints_[ost.index];
  auto target = [&](size_t port) {
    return OssTarget{ost.index, ost.host, ost.ports[port], ost.chainVersion};
  };
  if (endpoint.portCount == ost.ports.size()) {
    for (size_t i = 0; i < endpoint.connections.size(); ++i)
      endpoint.connections[i]->setTarget(target(i / lanes()));
    return;
  }
  for (auto& connection : endpoint.connections) {
    connection->retire();
    retired_.push_back(std::move(connection));
  }
  endpoint.connections.clear();
  endpoint.portCount = static_cast<uint32_t>(ost.ports.size());
  for (size_t i = 0; i < ost.ports.size() * lanes(); ++i) {
    uint32_t lane = i % lanes();
    DataWorker& worker = *workers_[lane / options_.lanesPerWorker];
    endpoint.connections.push_back(std::make_unique<OssConnection>(
        worker, *this, target(i / lanes()), ost.index * kLanesMax + lane,
        options_.inFlightPerConnection));
  }
}

void RequestRouter::setSession(Session session) {
  {
    std::lock_guard lock(sessionMutex_);
    session_ = session;
    reportedStale_.reset();
  }
  std::shared_lock lock(endpointsMutex_);
  for (auto& [index, endpoint] : endpoints_)
    for (auto& connection : endpoint.connections) connection->worker().attend(*connection);
}

void RequestRouter::setRemoved(std::vector<InodeId> inodes) {
  std::lock_guard lock(sessionMutex_);
  removed_ = {inodes.begin(), inodes.end()};
  anyRemoved_.store(!removed_.empty(), std::memory_order_release);
}

bool RequestRouter::isRefused(const Request& request) const {
  if (request.operation->isMisplaced()) return true;
  if (!anyRemoved_.load(std::memory_order_acquire)) return false;
  std::lock_guard lock(sessionMutex_);
  return std::any_of(request.slices.begin(), request.slices.end(),
                     [&](const Slice& slice) { return removed_.contains(slice.object.inode); });
}

void RequestRouter::onStaleSession(std::function<void()> callback) {
  std::lock_guard lock(sessionMutex_);
  onStaleSession_ = std::move(callback);
}

std::optional<Session> RequestRouter::session() const {
  std::lock_guard lock(sessionMutex_);
  return session_;
}

void RequestRouter::staleSession(Session session) {
  std::function<void()> callback;
  {
    std::lock_guard lock(sessionMutex_);
    if (session_ != session || reportedStale_ == session) return;
    reportedStale_ = session;
    callback = onStaleSession_;
  }
  spdlog::warn("session {:x} epoch {} is over, says an OSS", session.id.value, session.epoch);
  if (callback) callback();
}

uint32_t RequestRouter::portCount(ChainId chain) const {
  std::shared_lock lock(endpointsMutex_);
  auto found = endpoints_.find(chain.value);
  return found == endpoints_.end() ? 0 : found->second.portCount;
}

void RequestRouter::submit(Operation* operation, RequestList requests) {
  if (operations_.fetch_add(1, std::memory_order_relaxed) >= kOperationsMax) {
    while (Request* request = requests.popFront()) pool_.give(request);
    operations_.fetch_sub(1, std::memory_order_relaxed);
    return completeSoon(operation, EAGAIN);
  }
  // Before the first is sent: the operation may be over, and gone, when the last is on its way.
  operation->requestsLeft.store(requests.size(), std::memory_order_release);
  Instant now = options_.soft ? std::chrono::steady_clock::now() : Instant{};
  uint64_t id = nextRequestId_.fetch_add(requests.size(), std::memory_order_relaxed);
  if (options_.statistics != nullptr) options_.statistics->dataFrames += requests.size();
  while (Request* request = requests.popFront()) {
    request->id = id++;
    request->started = now;
    route(request);
  }
}

void RequestRouter::withdraw() {
  for (auto& worker : workers_) worker->withdraw();
}

void RequestRouter::completeSoon(Operation* operation, int error) {
  operations_.fetch_add(1, std::memory_order_relaxed);
  operation->error.store(error, std::memory_order_release);
  anyWorker(0).complete(operation);
}

void RequestRouter::route(Request* request) {
  for (;;) {
    uint32_t ports = portCount(request->chain);
    DataWorker& worker = anyWorker(request->id);
    if (ports == 0 || worker.stopping()) return worker.park(request, kMapPoll);
    if (ports != request->portCount) return split(request);
    OssConnection* connection = choose(*request);
    if (connection != nullptr && connection->submit(request)) return;
    // Retired between the two, so there is a new map; or shut down, which the next round sees.
  }
}

// The least busy worker, so that all of them have something to do, and its least busy lane. When
// all are equally busy, OSTs go to different workers, and requests of one OST stay together.
OssConnection* RequestRouter::choose(const Request& request) {
  std::shared_lock lock(endpointsMutex_);
  auto found = endpoints_.find(request.chain.value);
  if (found == endpoints_.end() || found->second.portCount != request.portCount) return nullptr;
  Endpoint& endpoint = found->second;
  uint32_t best = request.chain.value % options_.workers;
  uint32_t least = workers_[best]->load().load(std::memory_order_relaxed);
  for (uint32_t i = 1; i < options_.workers; ++i) {
    uint32_t candidate = (request.chain.value + i) % options_.workers;
    uint32_t load = workers_[candidate]->load().load(std::memory_order_relaxed);
    if (load < least) {
      best = candidate;
      least = load;
    }
  }
  auto first =
      endpoint.connections.begin() + request.port * lanes() + best * options_.lanesPerWorker;
  return std::min_element(first, first + options_.lanesPerWorker,
                          [](auto& a, auto& b) { return a->load() < b->load(); })
      ->get();
}

// The OST has another number of ports than when the request was cut, so its objects may belong to
// several now.
void RequestRouter::split(Request* request) {
  Operation* operation = request->operation;
  FramePlanner planner(
      pool_, [this](ChainId chain) { return portCount(chain); }, operation, request->op);
  for (const Slice& slice : request->slices) planner.add(request->chain, slice.lengthBytes, slice);
  int error = 0;
  RequestList parts = planner.finish(error);  // cannot fail: at most one for each extent
  operation->requestsLeft.fetch_add(parts.size() - 1, std::memory_order_acq_rel);
  uint64_t id = nextRequestId_.fetch_add(parts.size(), std::memory_order_relaxed);
  Instant started = request->started;
  bool sent = request->sent;
  pool_.give(request);
  while (Request* part = parts.popFront()) {
    part->id = id++;
    part->started = started;
    part->sent = sent;
    route(part);
  }
}

}  // namespace trainfs::client
