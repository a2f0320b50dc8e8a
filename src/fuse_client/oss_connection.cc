#include "fuse_client/oss_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "fuse_client/data_worker.h"

namespace trainfs::client {

namespace {

// A server's machine that is gone is noticed by these: without requests outstanding, and with.
constexpr int kKeepIdleSeconds = 5, kKeepIntervalSeconds = 2, kKeepProbes = 3;
constexpr unsigned kUserTimeoutMs = 30'000;

void setOption(int fd, int level, int option, int value) {
  // None of these is needed to be right, so a kernel without one is no reason to fail.
  setsockopt(fd, level, option, &value, sizeof value);
}

std::chrono::microseconds jittered(std::chrono::microseconds most) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return most / 2 + most / 2 * (random() % 1024) / 1024;
}

}  // namespace

OssConnection::OssConnection(DataWorker& worker, RequestRouter& router, OssTarget target,
                             uint32_t lane, uint32_t window)
    : worker_(worker), router_(router), lane_(lane), window_(window), target_(std::move(target)) {
  parts_.reserve(kBulkExtentsMax);
}

OssConnection::~OssConnection() {
  if (fd_ >= 0) close(fd_);
}

std::string OssConnection::name() {
  std::lock_guard lock(mutex_);
  return fmt::format("OST{:04x} at {}:{} lane {}", target_.ost, target_.host, target_.tcpPort,
                     lane_);
}

void OssConnection::setTarget(OssTarget target) {
  {
    std::lock_guard lock(mutex_);
    bool moved = target.host != target_.host || target.tcpPort != target_.tcpPort;
    target_ = std::move(target);
    if (!moved) return;
    targetChanged_ = true;
  }
  worker_.attend(*this);
}

void OssConnection::retire() {
  {
    std::lock_guard lock(mutex_);
    retired_ = true;
  }
  worker_.attend(*this);
}

io_uring_sqe* OssConnection::arm(Event& event) {
  io_uring_sqe* sqe = worker_.ring().take();
  Ring::attach(sqe, &event);  // before the prep: liburing's preps leave user_data alone
  ++underWay_;
  return sqe;
}

void OssConnection::attend() {
  failRefused();
  bool live = state_ != State::kIdle && state_ != State::kClosing;
  if (live) {
    auto reason = reasonToBreak();
    if (!reason.empty()) breakOff(reason);
  }
  if (state_ == State::kResolving) useResolved();
  if (state_ == State::kReady) {
    finishDeferred();
    waitUntilWritable();
  }
  if (state_ == State::kClosing) tryClose();
  if (state_ == State::kIdle) whenIdle();
}

// Why a connection that is up or on its way must be given up; empty: it need not.
std::string OssConnection::reasonToBreak() {
  auto session = router_.session();
  std::lock_guard lock(mutex_);
  if (worker_.stopping()) return "shutting down";
  if (retired_) return "its OST has other ports now";
  if (targetChanged_) return "its OST has moved";
  if (sendError_ != 0) return std::strerror(sendError_);
  if (session != session_) return "there is a new session";
  if (state_ != State::kReady && std::chrono::steady_clock::now() >= greetBy_)
    return "no answer while connecting";
  return "";
}

void OssConnection::whenIdle() {
  if (worker_.stopping()) return failAll();
  RequestList homeless;
  {
    std::lock_guard lock(mutex_);
    targetChanged_ = false;
    if (retired_) homeless = std::move(queue_);
    if (queue_.empty() && homeless.empty()) return;
  }
  if (!homeless.empty()) {
    load_.fetch_sub(homeless.size(), std::memory_order_relaxed);
    worker_.load().fetch_sub(homeless.size(), std::memory_order_relaxed);
    while (Request* request = homeless.popFront()) router_.route(request);
    return;
  }
  bool renewed = stale_ && router_.session() != stale_;
  if (!renewed && std::chrono::steady_clock::now() < connectAfter_)
    return worker_.attendAt(*this, connectAfter_);
  startConnecting();
}

void OssConnection::startConnecting() {
  auto session = router_.session();
  if (!session) return;  // setSession attends every connection
  stale_.reset();
  session_ = *session;
  OssTarget target;
  {
    std::lock_guard lock(mutex_);
    target = target_;
    resolved_.reset();
  }
  greetBy_ = std::chrono::steady_clock::now() + kGreetingTimeout;
  worker_.attendAt(*this, greetBy_);
  if (auto address = AddressResolver::numeric(target.host, target.tcpPort))
    return openSocket(*address);
  state_ = State::kResolving;
  auto found = [this, host = target.host](std::string wrong, SocketAddress address) {
    {
      std::lock_guard lock(mutex_);
      resolved_ = Resolved{host, std::move(wrong), address};
    }
    worker_.attend(*this);
  };
  router_.resolver().resolve(target.host, target.tcpPort, std::move(found));
}

void OssConnection::useResolved() {
  std::optional<Resolved> resolved;
  {
    std::lock_guard lock(mutex_);
    resolved.swap(resolved_);
    // An answer that comes after the OST has moved is about another host.
    if (resolved && resolved->host != target_.host) return;
  }
  if (!resolved) return;
  if (resolved->wrong.empty()) return openSocket(resolved->address);
  breakOff("cannot resolve the name: " + resolved->wrong);
}

void OssConnection::openSocket(const SocketAddress& address) {
  address_ = address;
  state_ = State::kConnecting;
  fd_ = socket(address_.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return breakOff(std::string("socket: ") + std::strerror(errno));
  setOption(fd_, IPPROTO_TCP, TCP_NODELAY, 1);
  setOption(fd_, SOL_SOCKET, SO_KEEPALIVE, 1);
  setOption(fd_, IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleSeconds);
  setOption(fd_, IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalSeconds);
  setOption(fd_, IPPROTO_TCP, TCP_KEEPCNT, kKeepProbes);
  setOption(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
  io_uring_prep_connect(arm(connected_), fd_, reinterpret_cast<sockaddr*>(&address_.storage),
                        address_.bytes);
}

void OssConnection::connected(int result) {
  --underWay_;
  if (state_ == State::kClosing) return worker_.attend(*this);
  if (result < 0) return breakOff(std::strerror(-result));
  state_ = State::kGreeting;
  sendHello();
}

void OssConnection::sendHello() {
  BulkHeader header;
  header.op = BulkOp::kHello;
  header.session = session_.id.value;
  header.epoch = session_.epoch;
  header.lane = lane_;
  {
    std::lock_guard lock(mutex_);
    header.chain = target_.ost;
    header.chainVersion = target_.chainVersion;
  }
  sealHead(header, {});
  ssize_t sent = send(fd_, &header, sizeof header, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != sizeof header) return breakOff("cannot send the hello");
  buffer_.clear();
  armReceive();
}

void OssConnection::greeted() {
  const BulkHeader& header = reply_.header;
  if (header.op != BulkOp::kHello)
    return breakOff("malformed reply: another operation instead of hello");
  switch (header.status) {
    case BulkStatus::kOk:
      return ready();
    case BulkStatus::kStaleSession:
      return sessionRefused();
    case BulkStatus::kStaleChain:
      return breakOff("its OST does not serve that version of its chain");
    default:
      return breakOff(fmt::format("hello refused, status {}, error {}",
                                  static_cast<int>(header.status), header.errorCode));
  }
}

// It may become valid again: a fence is lifted when the MDS that set it was replaced by one that
// did not mean to.
void OssConnection::sessionRefused() {
  stale_ = session_;
  backoff_ = kBackoffMost;
  breakOff("the session is over");
  router_.staleSession(session_);
}

void OssConnection::ready() {
  state_ = State::kReady;
  if (complained_) spdlog::info("{}: connected again", name());
  complained_ = false;
  {
    std::lock_guard lock(mutex_);
    open_ = true;
  }
  pump();
}

void OssConnection::breakOff(const std::string& reason) {
  bool expected = worker_.stopping();
  spdlog::log(complained_ || expected ? spdlog::level::debug : spdlog::level::warn, "{}: {}; {}",
              name(), reason, expected ? "closing" : "connecting again");
  complained_ = !expected;
  bool wasConnecting = state_ == State::kConnecting;
  state_ = State::kClosing;
  {
    std::lock_guard lock(mutex_);
    open_ = false;
  }
  if (underWay_ > 0 && wasConnecting) {
    io_uring_prep_cancel(arm(cancelled_), &connected_, 0);
  } else if (fd_ >= 0) {
    shutdown(fd_, SHUT_RDWR);  // ends what is under way on it
  }
  worker_.attend(*this);
}

void OssConnection::cancelled(int) {
  --underWay_;
  worker_.attend(*this);
}

// The socket may go when nothing of the ring and no sender uses it any more. What was unanswered
// waits, in order, before what was never sent.
void OssConnection::tryClose() {
  if (underWay_ > 0) return;
  {
    std::lock_guard lock(mutex_);
    if (pumping_) return;
    // The memory of a read is not touched any more, and a second one does no harm.
    for (Request* request = sent_.first(); request != nullptr; request = request->next)
      request->sent &= request->op != BulkOp::kRead;
    queue_.prepend(sent_);
    sending_ = deferred_ = nullptr;
    blocked_ = false;
    sendError_ = 0;
  }
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  reading_ = nullptr;
  skipBytes_ = 0;
  buffer_.clear();
  state_ = State::kIdle;
  connectAfter_ = std::chrono::steady_clock::now() + jittered(backoff_);
  backoff_ = std::min(backoff_ * 2, kBackoffMost);
}

void OssConnection::failAll() {
  RequestList failed;
  {
    std::lock_guard lock(mutex_);
    dead_.store(true, std::memory_order_release);
    failed = std::move(queue_);
    failed.append(refused_);
  }
  load_.store(0, std::memory_order_relaxed);
  while (Request* request = failed.popFront()) worker_.finish(request, ESHUTDOWN);
}

template <typename Concerned>
void OssConnection::failQueued(Concerned concerned, int error) {
  RequestList failed;
  {
    std::lock_guard lock(mutex_);
    for (Request* request = queue_.first(); request != nullptr;) {
      Request* next = request->next;
      if (concerned(*request)) {
        queue_.remove(request);
        failed.pushBack(request);
      }
      request = next;
    }
  }
  failTaken(std::move(failed), error);
}

void OssConnection::failTaken(RequestList taken, int error) {
  load_.fetch_sub(taken.size(), std::memory_order_relaxed);
  worker_.load().fetch_sub(taken.size(), std::memory_order_relaxed);
  while (Request* request = taken.popFront()) worker_.finish(request, error);
}

void OssConnection::failRefused() {
  RequestList refused;
  {
    std::lock_guard lock(mutex_);
    refused = std::move(refused_);
  }
  failTaken(std::move(refused), EIO);
}

void OssConnection::leaveOutUnwanted() {
  failQueued([](const Request& request) { return request.canBeLeftOut(); }, EINTR);
}

void OssConnection::expire(Instant startedBefore) {
  failQueued([=](const Request& request) { return request.started < startedBefore; }, EIO);
  bool unanswered = false;
  {
    std::lock_guard lock(mutex_);
    for (Request* request = sent_.first(); request != nullptr; request = request->next)
      unanswered |= request->started < startedBefore;
  }
  // The server may still use the memory of what it has not answered: give the connection up first;
  // then it is in the queue, and the next call finds it there.
  bool live = state_ != State::kIdle && state_ != State::kClosing;
  if (unanswered && live) breakOff("no answer in the time that `soft` allows");
}

}  // namespace trainfs::client
