#include "fake_oss.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

namespace trainfs::client {

namespace {

bool receiveAll(int fd, void* to, size_t bytes) {
  return bytes == 0 || recv(fd, to, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

bool sendAll(int fd, const void* from, size_t bytes) {
  auto* next = static_cast<const char*>(from);
  while (bytes > 0) {
    ssize_t sent = send(fd, next, bytes, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    next += sent;
    bytes -= sent;
  }
  return true;
}

template <typename T>
void copyOut(std::vector<T>& to, const std::byte* from) {
  if (!to.empty()) std::memcpy(to.data(), from, to.size() * sizeof(T));
}

template <typename T>
void append(std::vector<std::byte>& to, const std::vector<T>& from) {
  auto bytes = std::as_bytes(std::span(from));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

std::vector<std::byte> tailOf(const std::vector<BulkExtent>& extents,
                              const std::vector<uint64_t>& sums) {
  std::vector<std::byte> tail;
  append(tail, extents);
  append(tail, sums);
  return tail;
}

void require(bool condition, const char* what) {
  if (condition) return;
  perror(what);
  abort();  // the client sent nonsense, or the test cannot run: neither is a matter of one
            // assertion
}

}  // namespace

FakeOss::FakeOss(uint32_t index, uint32_t portCount) : index_(index) {
  start(portCount);
}

void FakeOss::start(uint32_t portCount) {
  stopping_ = false;
  ports_.clear();
  for (uint32_t i = 0; i < portCount; ++i) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    require(bind(listener, reinterpret_cast<sockaddr*>(&address), bytes) == 0, "bind");
    require(listen(listener, 64) == 0, "listen");
    require(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &bytes) == 0,
            "getsockname");
    listeners_.push_back(listener);
    ports_.push_back(ntohs(address.sin_port));
    acceptors_.emplace_back([this, listener, i] { accept(listener, i); });
  }
}

void FakeOss::stop() {
  stopping_ = true;
  for (int listener : listeners_) shutdown(listener, SHUT_RDWR);
  for (auto& acceptor : acceptors_) acceptor.join();
  for (int listener : listeners_) close(listener);
  acceptors_.clear();
  listeners_.clear();
  std::vector<std::unique_ptr<Connection>> connections;
  {
    std::lock_guard lock(mutex_);
    connections.swap(connections_);
  }
  for (auto& connection : connections) shutdown(connection->fd, SHUT_RDWR);
  for (auto& connection : connections) {
    connection->thread.join();
    close(connection->fd);
  }
  lanes_.clear();  // only now: until they ended, they could still be greeted
}

void FakeOss::chooseFaults(Choose choose) {
  std::lock_guard lock(mutex_);
  choose_ = std::move(choose);
}

void FakeOss::setSession(uint64_t session, uint32_t epoch) {
  std::lock_guard lock(mutex_);
  session_ = {session, epoch};
}

OstAddress FakeOss::address() const {
  return {.index = index_,
          .host = "127.0.0.1",
          .ports = ports_,
          .chainVersion = chainVersion_,
          .active = true};
}

std::optional<std::vector<std::byte>> FakeOss::object(const ObjectId& id) {
  std::lock_guard lock(mutex_);
  auto found = objects_.find(id);
  if (found == objects_.end()) return std::nullopt;
  return found->second;
}

void FakeOss::accept(int listener, uint32_t port) {
  for (;;) {
    int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (stopping_) {
      if (fd >= 0) close(fd);
      return;
    }
    if (fd < 0) continue;
    std::lock_guard lock(mutex_);
    auto& connection = connections_.emplace_back(std::make_unique<Connection>());
    connection->fd = fd;
    connection->port = port;
    connection->thread = std::thread([this, c = connection.get()] {
      serve(*c);
      shutdown(c->fd, SHUT_RDWR);
      std::lock_guard lock(mutex_);
      c->over = true;
      over_.notify_all();
    });
  }
}

void FakeOss::serve(Connection& connection) {
  for (;;) {
    Frame frame;
    Fault fault = Fault::kNone;
    if (!receive(connection, frame, fault)) return;
    auto late = std::move(connection.late);
    connection.late.reset();
    if (!answer(connection, frame, fault)) return;
    if (late && !sendFrame(connection, *late, Fault::kNone)) return;
    // Nobody else comes to overtake it.
    char byte;
    bool idle = connection.late && recv(connection.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
    if (idle && !sendFrame(connection, *connection.late, Fault::kNone)) return;
    if (idle) connection.late.reset();
  }
}

bool FakeOss::receive(Connection& connection, Frame& frame, Fault& fault) {
  if (!receiveAll(connection.fd, &frame.header, sizeof frame.header)) return false;
  require(checkHeader(frame.header).empty(), "malformed header from the client");
  if (frame.header.op != BulkOp::kHello) {
    ++requests_;
    std::lock_guard lock(mutex_);
    if (choose_) fault = choose_(frame.header);
  }
  if (fault == Fault::kCloseBefore) return false;
  if (fault == Fault::kEarly) {
    Frame early = replyTo(frame.header, BulkStatus::kRetry);
    if (!sendFrame(connection, early, Fault::kNone)) return false;
  }
  std::vector<std::byte> tail(tailBytes(frame.header));
  if (!receiveAll(connection.fd, tail.data(), tail.size())) return false;
  require(checkHead(frame.header, tail).empty(), "malformed head from the client");
  frame.extents.resize(frame.header.extentCount);
  frame.sums.resize(frame.header.sumCount);
  copyOut(frame.extents, tail.data());
  copyOut(frame.sums, tail.data() + frame.extents.size() * sizeof(BulkExtent));
  frame.payload.resize(frame.header.payloadBytes);
  return receiveAll(connection.fd, frame.payload.data(), frame.payload.size());
}

FakeOss::Frame FakeOss::replyTo(const BulkHeader& request, BulkStatus status) {
  Frame reply;
  reply.header.op = request.op;
  reply.header.requestId = request.requestId;
  reply.header.flags = kBulkReply;
  reply.header.status = status;
  return reply;
}

bool FakeOss::answer(Connection& connection, const Frame& request, Fault fault) {
  Frame reply = replyTo(request.header, BulkStatus::kOk);
  if (request.header.op == BulkOp::kHello) {
    greet(connection, request, reply);
    return sendFrame(connection, reply, Fault::kNone);
  }
  for (const BulkExtent& extent : request.extents)
    require(workerOf(decodeObjectId(extent.object), ports_.size()) == connection.port,
            "object on the wrong port");
  if (fault == Fault::kEarly) return true;
  bool refused = fault == Fault::kRetry || fault == Fault::kStaleChain || fault == Fault::kBadSum;
  if (refused) {
    reply.header.status = fault == Fault::kRetry        ? BulkStatus::kRetry
                          : fault == Fault::kStaleChain ? BulkStatus::kStaleChain
                                                        : BulkStatus::kBadSum;
    return sendFrame(connection, reply, Fault::kNone);
  }
  {
    std::lock_guard lock(mutex_);
    if (session_ != std::pair(request.header.session, request.header.epoch)) {
      reply.header.status = BulkStatus::kStaleSession;
    } else if (request.header.chainVersion != chainVersion_) {
      reply.header.status = BulkStatus::kStaleChain;
    } else {
      execute(request, reply);
    }
  }
  if (fault == Fault::kCloseAfter) return false;
  if (fault == Fault::kLate && !connection.late) {
    connection.late = std::move(reply);
    return true;
  }
  return sendFrame(connection, reply, fault) &&
         (fault != Fault::kTwice || sendFrame(connection, reply, Fault::kNone));
}

void FakeOss::greet(Connection& connection, const Frame& hello, Frame& reply) {
  ++hellos_;
  std::unique_lock lock(mutex_);
  if (session_ != std::pair(hello.header.session, hello.header.epoch))
    reply.header.status = BulkStatus::kStaleSession;
  Connection* older = std::exchange(lanes_[{connection.port, hello.header.lane}], &connection);
  if (older == nullptr) return;
  shutdown(older->fd, SHUT_RDWR);
  over_.wait(lock, [&] { return older->over; });
}

void FakeOss::execute(const Frame& request, Frame& reply) {
  reply.extents = request.extents;
  const std::byte* from = request.payload.data();
  const uint64_t* sums = request.sums.data();
  for (BulkExtent& extent : reply.extents) {
    ObjectId id = decodeObjectId(extent.object);
    auto found = objects_.find(id);
    uint64_t size = found == objects_.end() ? 0 : found->second.size();
    uint64_t end = extent.offsetBytes + extent.lengthBytes;
    bool makes = request.header.op == BulkOp::kWrite;
    bool changes = request.header.op == BulkOp::kPunch || request.header.op == BulkOp::kSync;
    if (makes || (changes && found != objects_.end())) extent.verifier = verifier_;
    switch (request.header.op) {
      case BulkOp::kRead: {
        if (found == objects_.end() && extent.flags & kExtentMustExist) {
          reply = replyTo(request.header, BulkStatus::kIoError);
          reply.header.errorCode = EIO;
          return;
        }
        extent.flags = found == objects_.end() ? kExtentMissing : 0;
        uint64_t there = std::min(size, end) - std::min(size, extent.offsetBytes);
        extent.lengthBytes = there;
        if (there == 0) break;
        auto* data = found->second.data() + extent.offsetBytes;
        reply.payload.insert(reply.payload.end(), data, data + there);
        size_t before = reply.sums.size();
        reply.sums.resize(before + blockPieces(extent.offsetBytes, there));
        sumPieces(extent.offsetBytes, {data, there}, reply.sums.data() + before);
        break;
      }
      case BulkOp::kWrite: {
        require(verifyPieces(extent.offsetBytes, {from, extent.lengthBytes}, sums),
                "sums from the client");
        auto& object = objects_[id];
        if (object.size() < end) object.resize(end);
        std::memcpy(object.data() + extent.offsetBytes, from, extent.lengthBytes);
        from += extent.lengthBytes;
        sums += blockPieces(extent.offsetBytes, extent.lengthBytes);
        break;
      }
      case BulkOp::kPunch:
        for (uint64_t i = extent.offsetBytes; i < std::min(size, end); ++i)
          found->second[i] = std::byte{0};
        break;
      case BulkOp::kStat:
        extent.flags = found == objects_.end() ? kExtentMissing : 0;
        extent.offsetBytes = size;
        extent.lengthBytes = (size + 4095) / 4096;
        break;
      case BulkOp::kSync:
      case BulkOp::kHello:
        break;
    }
  }
}

bool FakeOss::sendFrame(Connection& connection, Frame& frame, Fault fault) {
  BulkHeader header = frame.header;
  auto extents = frame.extents;
  auto sums = frame.sums;
  auto payload = frame.payload;
  if (fault == Fault::kSpoiltData && payload.empty()) fault = Fault::kGarbage;
  if (fault == Fault::kSpoiltData) payload[payload.size() / 2] ^= std::byte{0x40};
  if (fault == Fault::kWrongSumCount && !sums.empty()) sums.pop_back();
  if (fault == Fault::kOtherObject && !extents.empty()) extents.back().object[15] ^= 1;
  if (fault == Fault::kShortWrite && header.op == BulkOp::kWrite && !extents.empty())
    extents.front().lengthBytes -= 1;
  header.extentCount = extents.size();
  header.sumCount = sums.size();
  header.payloadBytes = payload.size();
  auto tail = tailOf(extents, sums);
  sealHead(header, tail);
  std::vector<std::byte> bytes(sizeof header);
  std::memcpy(bytes.data(), &header, sizeof header);
  append(bytes, tail);
  if (fault == Fault::kCloseInHead) bytes.resize(bytes.size() / 2);
  bool closes = fault == Fault::kCloseInHead || fault == Fault::kCloseInPayload;
  if (fault == Fault::kCloseInPayload) payload.resize(payload.size() / 2);
  if (fault == Fault::kGarbage)
    for (auto& byte : bytes) byte ^= std::byte{0x5a};
  if (fault != Fault::kCloseInHead) append(bytes, payload);
  return sendAll(connection.fd, bytes.data(), bytes.size()) && !closes;
}

}  // namespace trainfs::client
