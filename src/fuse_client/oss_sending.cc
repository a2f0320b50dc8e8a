// The sending half of OssConnection. On any thread, one at a time.
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fuse_client/data_worker.h"
#include "fuse_client/oss_connection.h"
#include "trainfs/object_id.h"

namespace trainfs::client {

bool OssConnection::submit(Request* request) {
  bool open, first, unwanted;
  load_.fetch_add(1, std::memory_order_relaxed);
  worker_.load().fetch_add(1, std::memory_order_relaxed);
  {
    std::lock_guard lock(mutex_);
    if (retired_ || dead()) {
      load_.fetch_sub(1, std::memory_order_relaxed);
      worker_.load().fetch_sub(1, std::memory_order_relaxed);
      return false;
    }
    first = queue_.empty();
    queue_.pushBack(request);
    open = open_;
    unwanted = request->canBeLeftOut();
  }
  if (open) {
    pump();
  } else if (first) {
    worker_.attend(*this);  // with more in the queue it is on its way up already
  }
  if (unwanted) worker_.withdraw();  // it was on its way here when the others were left out
  return true;
}

// Sends until the queue is empty, the window or the socket is full, or the connection breaks.
void OssConnection::pump() {
  bool attention = false;
  {
    std::unique_lock lock(mutex_);
    if (pumping_ || blocked_ || !open_) return;
    pumping_ = true;
    while (open_ && !blocked_ && startNext() != nullptr) {
      size_t frameBytes =
          headBytes_ + (sending_->op == BulkOp::kWrite ? sending_->payloadBytes : 0);
      lock.unlock();
      ssize_t sent = sendSome();
      int error = sent < 0 ? errno : 0;
      lock.lock();
      if (error == EAGAIN) {
        blocked_ = attention = true;
      } else if (error != 0 && error != EINTR) {
        sendError_ = error;
        open_ = false;
      } else if (error == 0 && (sendOffset_ += sent) == frameBytes) {
        attention |= deferred_ == sending_;
        sending_ = nullptr;
      }
    }
    pumping_ = false;
    attention |= !refused_.empty();
    attention |= !open_;  // whoever broke it waits for us
  }
  if (attention) worker_.attend(*this);
}

// The request whose frame is to be sent, or sent on. With the lock held.
Request* OssConnection::startNext() {
  if (sending_ != nullptr) return sending_;
  // Asked here, where the session is fixed in which it would be sent.
  while (!queue_.empty() && router_.isRefused(*queue_.first()))
    refused_.pushBack(queue_.popFront());
  if (queue_.empty() || sent_.size() >= window_) return nullptr;
  sending_ = queue_.popFront();
  sent_.pushBack(sending_);
  sending_->sent = true;
  sendOffset_ = 0;
  buildHead(*sending_);
  return sending_;
}

// Anew for each sending, because the session and the chain's version may have changed since the
// last.
void OssConnection::buildHead(const Request& request) {
  BulkHeader header;
  header.op = request.op;
  header.requestId = request.id;
  header.session = session_.id.value;
  header.epoch = session_.epoch;
  header.chain = request.chain.value;
  header.chainVersion = target_.chainVersion;
  header.payloadBytes = request.op == BulkOp::kWrite ? request.payloadBytes : 0;
  header.extentCount = static_cast<uint16_t>(request.slices.size());
  header.sumCount = static_cast<uint16_t>(request.sums.size());
  std::byte* end = head_ + sizeof header;
  for (const Slice& slice : request.slices) {
    BulkExtent extent;
    auto id = encodeObjectId(slice.object);
    std::memcpy(extent.object, id.data(), id.size());
    extent.offsetBytes = slice.offsetBytes;
    extent.lengthBytes = slice.lengthBytes;
    extent.flags = slice.flags;
    std::memcpy(end, &extent, sizeof extent);
    end += sizeof extent;
  }
  if (!request.sums.empty())
    std::memcpy(end, request.sums.data(), request.sums.size() * sizeof(uint64_t));
  headBytes_ = sizeof header + tailBytes(header);
  sealHead(header, {head_ + sizeof header, tailBytes(header)});
  std::memcpy(head_, &header, sizeof header);
}

ssize_t OssConnection::sendSome() {
  iovec parts[1 + kBulkExtentsMax];
  size_t count = 0;
  size_t skip = sendOffset_;
  auto add = [&](std::byte* data, size_t bytes) {
    size_t skipped = std::min(skip, bytes);
    skip -= skipped;
    if (bytes > skipped) parts[count++] = {data + skipped, bytes - skipped};
  };
  add(head_, headBytes_);
  if (sending_->op == BulkOp::kWrite) {
    for (const Slice& slice : sending_->slices) add(slice.data, slice.lengthBytes);
  }
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  return sendmsg(fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// ---- On the worker's thread ----

void OssConnection::waitUntilWritable() {
  {
    std::lock_guard lock(mutex_);
    if (!blocked_ || polling_) return;
  }
  polling_ = true;
  io_uring_prep_poll_add(arm(writable_), fd_, POLLOUT);
}

void OssConnection::writable(int) {
  --underWay_;
  polling_ = false;
  if (state_ == State::kClosing) return worker_.attend(*this);
  {
    std::lock_guard lock(mutex_);
    blocked_ = false;
  }
  pump();  // an error of the socket shows there
}

void OssConnection::finishDeferred() {
  Request* request;
  Outcome outcome;
  {
    std::lock_guard lock(mutex_);
    if (deferred_ == nullptr || deferred_ == sending_) return;
    request = deferred_;
    outcome = deferredOutcome_;
  }
  settle(request, outcome);
}

}  // namespace trainfs::client
