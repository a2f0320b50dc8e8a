#include "fuse_client/data_worker.h"

#include <algorithm>
#include <cerrno>

#include "fuse_client/oss_connection.h"
#include "fuse_client/request_router.h"

namespace trainfs::client {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

DataWorker::DataWorker(RequestRouter& router, const DataClientOptions& options)
    : router_(router), options_(options) {}

DataWorker::~DataWorker() {
  beginStop();
  join();
}

void DataWorker::start() {
  std::promise<void> started;
  auto up = started.get_future();
  thread_ = std::thread([this, &started] { run(started); });
  up.get();
}

void DataWorker::beginStop() {
  stopping_.store(true, std::memory_order_release);
  unpark();  // and wakes it
}

void DataWorker::join() {
  if (thread_.joinable()) thread_.join();
}

// Wakes the thread for the first thing put in only: it takes all that is there.
template <typename Put>
void DataWorker::put(Put put) {
  std::lock_guard lock(mutex_);
  bool first = inbox_.empty();
  put(inbox_);
  if (first && waker_ != nullptr && std::this_thread::get_id() != thread_.get_id()) waker_->wake();
}

void DataWorker::attend(OssConnection& connection) {
  if (!connection.wantAttention()) return;
  put([&](Inbox& inbox) { inbox.connections.push_back(&connection); });
}

void DataWorker::park(Request* request, milliseconds delay) {
  put([&](Inbox& inbox) { inbox.parked.emplace_back(request, delay); });
}

void DataWorker::complete(Operation* operation) {
  put([&](Inbox& inbox) { inbox.operations.push_back(operation); });
}

void DataWorker::unpark() {
  put([](Inbox& inbox) { inbox.unpark = true; });
}

void DataWorker::withdraw() {
  put([](Inbox& inbox) { inbox.withdraw = true; });
}

void DataWorker::attendAt(OssConnection& connection, Instant when) {
  attendAt_.emplace(when, &connection);
}

void DataWorker::run(std::promise<void>& started) {
  // Made here, because a ring belongs to the thread that made it.
  try {
    ring_ = std::make_unique<Ring>(kRingEntries);
    auto waker = std::make_unique<Waker>(*ring_, [] {});  // the loop looks into the inbox anyway
    std::lock_guard lock(mutex_);
    waker_ = std::move(waker);
  } catch (...) {
    ring_.reset();
    started.set_exception(std::current_exception());
    return;
  }
  started.set_value();
  if (options_.soft) nextExpiry_ = steady_clock::now();
  for (;;) {
    while (handleInbox()) {
    }
    if (stopping() && drained()) break;
    runTimers();
    ring_->run(untilNextTimer());
  }
  std::unique_ptr<Waker> waker;
  {
    std::lock_guard lock(mutex_);
    waker.swap(waker_);
  }
  waker.reset();
  ring_.reset();
}

// False when there was nothing.
bool DataWorker::handleInbox() {
  Inbox inbox;
  {
    std::lock_guard lock(mutex_);
    if (inbox_.empty()) return false;
    std::swap(inbox, inbox_);
  }
  auto now = steady_clock::now();
  for (Operation* operation : inbox.operations) conclude(operation);
  for (auto& [request, delay] : inbox.parked) parked_.emplace(now + delay, request);
  for (OssConnection* connection : inbox.connections) {
    if (connection->markAttended()) connections_.push_back(connection);
    connection->attentionGiven();
    connection->attend();
  }
  // What was parked meanwhile may have become unwanted before it was in here.
  if (inbox.withdraw || !inbox.parked.empty()) leaveOutUnwanted();
  if (inbox.unpark || stopping()) routeParked(true, now);
  if (stopping()) {
    for (OssConnection* connection : connections_)
      if (!connection->dead()) connection->attend();
  }
  return true;
}

void DataWorker::routeParked(bool all, Instant now) {
  while (!parked_.empty() && (all || parked_.begin()->first <= now)) {
    Request* request = parked_.begin()->second;
    parked_.erase(parked_.begin());
    if (stopping()) {
      finish(request, ESHUTDOWN);
    } else {
      if (options_.statistics != nullptr) ++options_.statistics->dataRerouted;
      router_.route(request);
    }
  }
}

void DataWorker::runTimers() {
  if (attendAt_.empty() && parked_.empty() && !nextExpiry_) return;
  auto now = steady_clock::now();
  while (!attendAt_.empty() && attendAt_.begin()->first <= now) {
    OssConnection* connection = attendAt_.begin()->second;
    attendAt_.erase(attendAt_.begin());
    connection->attend();
  }
  routeParked(false, now);
  if (nextExpiry_ && *nextExpiry_ <= now) {
    expire(now - options_.softTimeout);
    nextExpiry_ = now + std::clamp<milliseconds>(options_.softTimeout / 4, milliseconds(10),
                                                 milliseconds(1000));
  }
}

template <typename Concerned>
void DataWorker::failParked(Concerned concerned, int error) {
  for (auto entry = parked_.begin(); entry != parked_.end();) {
    Request* request = entry->second;
    if (concerned(*request)) {
      entry = parked_.erase(entry);
      finish(request, error);
    } else {
      ++entry;
    }
  }
}

void DataWorker::leaveOutUnwanted() {
  failParked([](const Request& request) { return request.canBeLeftOut(); }, EINTR);
  for (OssConnection* connection : connections_)
    if (connection->load() > 0) connection->leaveOutUnwanted();
}

void DataWorker::expire(Instant startedBefore) {
  failParked([=](const Request& request) { return request.started < startedBefore; }, EIO);
  for (OssConnection* connection : connections_)
    if (connection->load() > 0) connection->expire(startedBefore);
}

milliseconds DataWorker::untilNextTimer() const {
  {
    std::lock_guard lock(mutex_);
    if (!inbox_.empty()) return milliseconds(0);  // put in by the timers, on this thread
  }
  std::optional<Instant> next = nextExpiry_;
  auto consider = [&next](Instant when) { next = next ? std::min(*next, when) : when; };
  if (!attendAt_.empty()) consider(attendAt_.begin()->first);
  if (!parked_.empty()) consider(parked_.begin()->first);
  if (!next) return milliseconds(-1);
  auto left = std::chrono::ceil<milliseconds>(*next - steady_clock::now());
  return std::max(left, milliseconds(0));
}

bool DataWorker::drained() const {
  return parked_.empty() && std::all_of(connections_.begin(), connections_.end(),
                                        [](OssConnection* c) { return c->dead(); });
}

void DataWorker::finish(Request* request, int error) {
  Operation* operation = request->operation;
  router_.pool().give(request);
  int none = 0;
  if (error != 0) operation->error.compare_exchange_strong(none, error, std::memory_order_acq_rel);
  if (operation->requestsLeft.fetch_sub(1, std::memory_order_acq_rel) == 1) conclude(operation);
}

void DataWorker::conclude(Operation* operation) {
  operation->complete();
  router_.operationDone();
  delete operation;
}

bool DataWorker::failLeftovers() {
  Inbox inbox;
  {
    std::lock_guard lock(mutex_);
    if (inbox_.empty()) return false;
    std::swap(inbox, inbox_);
  }
  for (Operation* operation : inbox.operations) conclude(operation);
  for (auto& [request, delay] : inbox.parked) finish(request, ESHUTDOWN);
  for (OssConnection* connection : inbox.connections) connection->failAll();
  return true;
}

}  // namespace trainfs::client
