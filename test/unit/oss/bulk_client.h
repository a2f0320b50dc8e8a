// A client of one data port, for tests: blocking, one frame at a time in each direction.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "store_fixture.h"
#include "trainfs/bulk.h"
#include "trainfs/object_id.h"

namespace trainfs::oss {

struct Frame {
  BulkHeader header;
  std::vector<BulkExtent> extents;
  std::vector<uint64_t> sums;
  Bytes payload;
};

inline BulkExtent extentOf(ObjectId object, uint64_t offset, uint32_t length, uint32_t flags = 0) {
  BulkExtent extent;
  auto id = encodeObjectId(object);
  std::memcpy(extent.object, id.data(), id.size());
  extent.offsetBytes = offset;
  extent.lengthBytes = length;
  extent.flags = flags;
  return extent;
}

class BulkClient {
 public:
  explicit BulkClient(uint16_t port, uint64_t session = 1, uint32_t epoch = 1, uint32_t lane = 0)
      : session_(session), epoch_(epoch), lane_(lane) {
    socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("connect");
    int yes = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    timeval limit{.tv_sec = 30};  // a test that waits longer has failed
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  BulkClient(const BulkClient&) = delete;
  ~BulkClient() { close(socket_); }

  Frame request(BulkOp op, std::vector<BulkExtent> extents) {
    Frame frame;
    frame.header.op = op;
    frame.header.requestId = nextId_++;
    frame.header.session = session_;
    frame.header.epoch = epoch_;
    frame.header.chain = 0;
    frame.header.chainVersion = 1;
    frame.header.lane = lane_;
    frame.extents = std::move(extents);
    return frame;
  }
  Frame writeRequest(ObjectId object, uint64_t offset, Bytes data) {
    Frame frame =
        request(BulkOp::kWrite, {extentOf(object, offset, static_cast<uint32_t>(data.size()))});
    frame.sums = sumsOf(offset, data);
    frame.payload = std::move(data);
    return frame;
  }

  void send(Frame frame) {
    frame.header.extentCount = frame.extents.size();
    frame.header.sumCount = frame.sums.size();
    frame.header.payloadBytes = frame.payload.size();
    Bytes tail(tailBytes(frame.header));
    size_t extentBytes = frame.extents.size() * sizeof(BulkExtent);
    if (extentBytes > 0) std::memcpy(tail.data(), frame.extents.data(), extentBytes);
    if (!frame.sums.empty())
      std::memcpy(tail.data() + extentBytes, frame.sums.data(), frame.sums.size() * 8);
    sealHead(frame.header, tail);
    sendBytes(&frame.header, sizeof frame.header);
    sendBytes(tail.data(), tail.size());
    sendBytes(frame.payload.data(), frame.payload.size());
  }
  void sendBytes(const void* data, size_t bytes) {
    auto* from = static_cast<const char*>(data);
    while (bytes > 0) {
      ssize_t sent = ::send(socket_, from, bytes, MSG_NOSIGNAL);
      if (sent <= 0) throw std::runtime_error("send");
      from += sent;
      bytes -= sent;
    }
  }

  // Throws when the connection is over.
  Frame receive() {
    Frame frame;
    receiveBytes(&frame.header, sizeof frame.header);
    if (auto wrong = checkHeader(frame.header); !wrong.empty()) throw std::runtime_error(wrong);
    Bytes tail(tailBytes(frame.header));
    receiveBytes(tail.data(), tail.size());
    if (auto wrong = checkHead(frame.header, tail); !wrong.empty()) throw std::runtime_error(wrong);
    frame.extents.resize(frame.header.extentCount);
    size_t extentBytes = frame.extents.size() * sizeof(BulkExtent);
    if (extentBytes > 0) std::memcpy(frame.extents.data(), tail.data(), extentBytes);
    frame.sums.resize(frame.header.sumCount);
    if (!frame.sums.empty())
      std::memcpy(frame.sums.data(), tail.data() + extentBytes, frame.sums.size() * 8);
    frame.payload.resize(frame.header.payloadBytes);
    receiveBytes(frame.payload.data(), frame.payload.size());
    return frame;
  }
  Frame call(Frame frame) {
    send(std::move(frame));
    return receive();
  }
  BulkStatus hello() { return call(request(BulkOp::kHello, {})).header.status; }

  // The server has closed the connection, whatever it sent before.
  bool isCut() {
    char byte;
    while (true) {
      ssize_t got = recv(socket_, &byte, 1, 0);
      if (got == 0 || (got < 0 && errno == ECONNRESET)) return true;
      if (got < 0) return false;
    }
  }

 private:
  void receiveBytes(void* data, size_t bytes) {
    auto* to = static_cast<char*>(data);
    while (bytes > 0) {
      ssize_t got = recv(socket_, to, bytes, 0);
      if (got <= 0) throw std::runtime_error("connection is over");
      to += got;
      bytes -= got;
    }
  }

  int socket_ = -1;
  uint64_t session_, nextId_ = 100;
  uint32_t epoch_, lane_;
};

}  // namespace trainfs::oss
