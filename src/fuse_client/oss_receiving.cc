// The receiving half of OssConnection, and what becomes of answered requests. On the worker's
// thread.
#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "fuse_client/data_worker.h"
#include "fuse_client/oss_connection.h"

namespace trainfs::client {

// Payload goes straight to its memory, in one operation that completes when all of it is there;
// everything else through the buffer.
void OssConnection::armReceive() {
  io_uring_sqe* sqe = arm(received_);
  if (reading_ != nullptr) {
    message_ = {};
    message_.msg_iov = parts_.data() + nextPart_;
    message_.msg_iovlen = parts_.size() - nextPart_;
    io_uring_prep_recvmsg(sqe, fd_, &message_, MSG_WAITALL);
  } else {
    auto space = buffer_.space();
    io_uring_prep_recv(sqe, fd_, space.data(), space.size(), 0);
  }
}

void OssConnection::received(int result) {
  --underWay_;
  if (state_ == State::kClosing) return worker_.attend(*this);
  if (result == -EINTR || result == -EAGAIN) return armReceive();
  if (result <= 0) return breakOff(result == 0 ? "the server closed it" : std::strerror(-result));
  if (reading_ != nullptr) {
    advancePayload(result);
  } else {
    buffer_.filled(result);
  }
  if (takeReplies()) armReceive();
}

// Handles all that has been received. False when the connection is not to be read on.
bool OssConnection::takeReplies() {
  for (;;) {
    if (skipBytes_ > 0) {
      skipBytes_ -= buffer_.skip(skipBytes_);
      if (skipBytes_ > 0) return true;
    }
    if (reading_ != nullptr) {
      if (!takePayload()) return true;
      finishRead();
    }
    std::string wrong;
    switch (buffer_.parse(reply_, wrong)) {
      case ReplyBuffer::Parsed::kIncomplete:
        return true;
      case ReplyBuffer::Parsed::kMalformed:
        breakOff("malformed reply: " + wrong);
        return false;
      case ReplyBuffer::Parsed::kHead:
        if (!handleReply()) return false;
    }
  }
}

bool OssConnection::handleReply() {
  if (state_ == State::kGreeting) {
    greeted();
    return state_ == State::kReady;
  }
  Request* request;
  {
    std::lock_guard lock(mutex_);
    // Replies mostly come in order, so this looks at one or two.
    request = sent_.first();
    while (request != nullptr && request->id != reply_.header.requestId) request = request->next;
    // Answered already and only waiting for its sender, who may let it be completed at any moment:
    // a second answer must not be received into it.
    if (request == deferred_) request = nullptr;
  }
  if (request == nullptr) {
    // Harmless: an answer is taken once, and its memory is not touched again.
    spdlog::warn("{}: reply to request {}, which is not outstanding; ignored", name(),
                 reply_.header.requestId);
    skipBytes_ = reply_.header.payloadBytes;
    return true;
  }
  if (auto wrong = matchReply(*request, reply_); !wrong.empty()) {
    breakOff("malformed reply: " + wrong);
    return false;
  }
  backoff_ = kBackoffLeast;
  if (reply_.header.status == BulkStatus::kStaleSession) {
    sessionRefused();  // the request stays and is resent under the next one
    return false;
  }
  if (reply_.header.status != BulkStatus::kOk) {
    settle(request, refused(*request));
  } else if (request->op == BulkOp::kRead) {
    startPayload(request);
  } else {
    takeAnswers(*request);
    settle(request, {});
  }
  return true;
}

void OssConnection::takeAnswers(Request& request) {
  for (size_t i = 0; i < request.slices.size(); ++i) {
    const BulkExtent& extent = reply_.extents[i];
    uint32_t piece = request.slices[i].piece;
    if (request.op != BulkOp::kStat) {
      request.operation->noteVerifier(piece, extent.verifier);
    } else {
      request.operation->figures[piece] = {.exists = !(extent.flags & kExtentMissing),
                                           .sizeBytes = extent.offsetBytes,
                                           .usedBytes = uint64_t{extent.lengthBytes} * 4096};
    }
  }
}

void OssConnection::startPayload(Request* request) {
  reading_ = request;
  parts_.clear();
  nextPart_ = 0;
  for (size_t i = 0; i < request->slices.size(); ++i) {
    if (reply_.extents[i].lengthBytes > 0)
      parts_.push_back({request->slices[i].data, reply_.extents[i].lengthBytes});
  }
}

void OssConnection::advancePayload(size_t bytes) {
  while (bytes > 0) {
    iovec& part = parts_[nextPart_];
    size_t taken = std::min(bytes, part.iov_len);
    part.iov_base = static_cast<std::byte*>(part.iov_base) + taken;
    part.iov_len -= taken;
    bytes -= taken;
    if (part.iov_len == 0) ++nextPart_;
  }
}

// Takes what the buffer has of the payload. False while some is missing.
bool OssConnection::takePayload() {
  while (nextPart_ < parts_.size()) {
    iovec& part = parts_[nextPart_];
    size_t taken = buffer_.take({static_cast<std::byte*>(part.iov_base), part.iov_len});
    if (taken == 0) return false;
    advancePayload(taken);
  }
  return true;
}

void OssConnection::finishRead() {
  Request* request = reading_;
  reading_ = nullptr;
  if (auto wrong = verifyRead(*request, reply_); !wrong.empty()) {
    bool again = ++request->badSums < kBadReadsMax;
    // Next time the server looks, too: then it says whether its disk or the way here damages data.
    for (Slice& slice : request->slices) slice.flags |= kExtentVerify;
    spdlog::error("{}: read of {}; {}", name(), wrong, again ? "reading it again" : "EIO");
    return settle(request, {.error = EIO, .again = again});
  }
  for (size_t i = 0; i < request->slices.size(); ++i) {
    bool missing = reply_.extents[i].flags & kExtentMissing;
    if (missing && (request->slices[i].flags & kExtentMustExist))
      return settle(request, {.error = EIO});
  }
  zeroWhatIsMissing(*request, reply_);
  settle(request, {});
}

// What to do after any status but kOk and kStaleSession.
OssConnection::Outcome OssConnection::refused(Request& request) {
  const BulkHeader& header = reply_.header;
  switch (header.status) {
    case BulkStatus::kStaleChain:
      return {.again = true, .delay = kMapPoll};
    case BulkStatus::kRetry: {
      auto delay = kRetryLeast * (1u << std::min(request.refusals++, 10u));
      return {.again = true, .delay = std::min<std::chrono::milliseconds>(delay, kRetryMost)};
    }
    case BulkStatus::kBadSum: {
      bool again = request.op == BulkOp::kWrite && ++request.badSums < kBadWritesMax;
      spdlog::error("{}: the server found a wrong sum in request {}; {}", name(), request.id,
                    again ? "sending it again" : "EIO");
      return {.error = EIO, .again = again};
    }
    default:
      return {.error = header.errorCode > 0 && header.errorCode < 4096 ? header.errorCode : EIO};
  }
}

void OssConnection::settle(Request* request, const Outcome& outcome) {
  std::unique_lock lock(mutex_);
  if (request == sending_) {
    // The sender still looks at it: the reply was faster than the return of its send, or came
    // before its end. Another that waits like this has been let go by its sender, or this one could
    // not be being sent.
    Request* earlier = std::exchange(deferred_, request);
    Outcome earlierOutcome = std::exchange(deferredOutcome_, outcome);
    lock.unlock();
    if (earlier != nullptr) settle(earlier, earlierOutcome);
    return;
  }
  if (request == deferred_) deferred_ = nullptr;
  sent_.remove(request);
  bool more = !queue_.empty();
  lock.unlock();
  load_.fetch_sub(1, std::memory_order_relaxed);
  worker_.load().fetch_sub(1, std::memory_order_relaxed);
  if (more) pump();
  if (outcome.again) {
    request->sent = false;  // refused
    worker_.park(request, outcome.delay);
  } else {
    worker_.finish(request, outcome.error);
  }
}

}  // namespace trainfs::client
