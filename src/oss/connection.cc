#include "oss/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "oss/data_worker.h"
#include "trainfs/logging.h"
#include "trainfs/object_id.h"

namespace trainfs::oss {

Connection::Connection(DataWorker& worker, int socket, std::string peer, uint64_t serial)
    : worker_(worker),
      socket_(socket),
      peer_(std::move(peer)),
      serial_(serial),
      verified_(worker.ostCount(), 0),
      requestOver_(worker.reactor()),
      wakeSender_(worker.reactor()),
      senderOver_(worker.reactor()),
      receivingSince_(std::chrono::steady_clock::now()) {}

Connection::~Connection() {
  ::close(socket_);
}

Task<> Connection::run() {
  spawn(send());
  co_await receive();
  while (inFlight_ > 0) co_await requestOver_;
  sendFinished_ = true;
  wakeSender_.pulse();
  co_await senderOver_;
  worker_.remove(*this);
}

void Connection::close(const std::string& reason) {
  if (closing_) return;
  spdlog::log(greeted_ ? spdlog::level::info : spdlog::level::warn, "{}: connection closed: {}",
              peer_, reason);
  closing_ = true;
  shutdown(socket_, SHUT_RDWR);
  requestOver_.pulse();
  wakeSender_.pulse();
  worker_.executionOver();  // it may itself wait for older ones to end
}

void Connection::finish() {
  finishing_ = true;
  shutdown(socket_, SHUT_RD);
}

void Connection::closeIfStalled(Instant now) {
  bool idle = greeted_ && reader_.betweenFrames();
  if (receiving_ && !idle && now - receivingSince_ > (greeted_ ? kStallMax : kGreetingMax))
    close(greeted_ ? "stopped in the middle of a frame" : "no hello came");
  if (greeting_ && !greeted_ && !finishing_ && peerIsGone())
    close("its peer did not wait for the answer to its hello");
  if (sending_ && now - sendingSince_ > kStallMax) close("does not take its replies");
}

// Nobody receives from it while its hello waits, maybe for a disk.
bool Connection::peerIsGone() const {
  char byte;
  ssize_t got = recv(socket_, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

Task<> Connection::receive() {
  while (!closing_) {
    switch (reader_.next()) {
      case FrameReader::Step::kMore:
        if (!co_await receiveMore()) co_return;
        break;
      case FrameReader::Step::kHead:
        co_await takeBuffer();
        reader_.setPayload(buffer_.memory().first(reader_.header().payloadBytes));
        break;
      case FrameReader::Step::kFrame:
        co_await handleFrame();
        break;
      case FrameReader::Step::kBroken:
        close("bad frame: " + reader_.error());
        break;
    }
  }
}

Task<> Connection::takeBuffer() {
  size_t bytes = Request::bufferBytes(reader_.header(), reader_.extents());
  while (charged_ > 0 && charged_ + bytes > kBufferShare) co_await requestOver_;
  if (bytes > 0) buffer_ = co_await worker_.buffers().take(bytes);
  charge_ = bytes;
}

// False: the stream is over.
Task<bool> Connection::receiveMore() {
  if (finishing_) co_return false;
  auto space = reader_.space();
  bool payload = space.data() >= buffer_.memory().data() &&
                 space.data() < buffer_.memory().data() + buffer_.memory().size();
  receiving_ = true;
  receivingSince_ = std::chrono::steady_clock::now();
  int result = co_await worker_.reactor().operate([&](io_uring_sqe* sqe) {
    io_uring_prep_recv(sqe, socket_, space.data(), space.size(), payload ? MSG_WAITALL : 0);
  });
  receiving_ = false;
  if (result == -EINTR || result == -EAGAIN) co_return true;
  if (result > 0) {
    reader_.received(result);
    co_return true;
  }
  if (!closing_ && !finishing_ && (result < 0 || !reader_.betweenFrames()))
    close(result < 0 ? std::strerror(-result) : "ended in the middle of a frame");
  co_return false;
}

Task<> Connection::handleFrame() {
  const BulkHeader& header = reader_.header();
  if (header.op == BulkOp::kHello) {
    if (greeted_) co_return close("a second hello");
    co_await handleHello(header);
    co_return;
  }
  if (!greeted_) co_return close("a request before the hello");
  auto request = std::make_unique<Request>();
  request->header = header;
  request->extents.assign(reader_.extents().begin(), reader_.extents().end());
  request->sums.assign(reader_.sums().begin(), reader_.sums().end());
  request->buffer = std::move(buffer_);
  request->charge = charge_;
  while (inFlight_ >= kRequestsMax && !closing_) co_await requestOver_;
  if (!closing_) co_await handleRequest(std::move(request));
}

Task<> Connection::handleHello(BulkHeader header) {
  session_ = SessionId{header.session};
  epoch_ = header.epoch;
  lane_ = header.lane;
  greeting_ = true;
  BulkStatus status = co_await verify(header);
  // A fence that comes after this finds the connection, one that came before is in the table.
  if (status == BulkStatus::kOk && worker_.sessions().isFenced(session_, epoch_))
    status = BulkStatus::kStaleSession;
  if (status == BulkStatus::kOk) co_await worker_.replaceOlder(*this);
  if (closing_) co_return;
  greeting_ = greeted_ = status == BulkStatus::kOk;
  ++inFlight_;
  answer(refuse(header, status));
}

// Asks the MDS whether it knows the session, once per connection and registration of the OST.
Task<BulkStatus> Connection::verify(const BulkHeader& header) {
  uint32_t number = worker_.findOst(header.chain).value_or(0);
  Ost& ost = worker_.ost(number);
  uint32_t registration = ost.lease.registration();
  if (registration == 0) co_return BulkStatus::kRetry;
  if (verified_[number] == registration) co_return BulkStatus::kOk;
  auto verdict =
      co_await ForeignCall<Verdict>(worker_.reactor(), [&](ForeignCall<Verdict>::Done done) {
        worker_.verifier().check(number, session_, epoch_, std::move(done));
      });
  if (verdict == Verdict::kUnknown) co_return BulkStatus::kRetry;
  if (verdict == Verdict::kInvalid) co_return BulkStatus::kStaleSession;
  verified_[number] = registration;
  co_return BulkStatus::kOk;
}

Task<> Connection::handleRequest(std::unique_ptr<Request> request) {
  for (auto& extent : request->extents) {
    ObjectId object = decodeObjectId(extent.object);
    if (worker_.owns(object)) continue;
    co_return close("request for object " + objectIdHex(object) + ", which another port serves");
  }
  BulkStatus admitted = BulkStatus::kStaleSession;
  if (request->header.session == session_.value && request->header.epoch == epoch_)
    admitted = co_await verify(request->header);
  if (closing_) co_return;
  spawn(serve(std::move(request), admitted));
}

BulkStatus Connection::admit(Request& request) {
  auto number = worker_.findOst(request.header.chain);
  if (!number) return BulkStatus::kStaleChain;
  Ost& ost = worker_.ost(*number);
  request.registration = verified_[*number];
  if (!ost.lease.holdsIn(request.registration)) return BulkStatus::kRetry;
  if (request.header.chainVersion != ost.chainVersion) return BulkStatus::kStaleChain;
  return BulkStatus::kOk;
}

Task<> Connection::serve(std::unique_ptr<Request> request, BulkStatus admitted) {
  ++inFlight_;
  ++executing_;
  charged_ += request->charge;
  auto begun = std::chrono::steady_clock::now();
  if (admitted == BulkStatus::kOk) admitted = admit(*request);
  Reply reply;
  if (admitted != BulkStatus::kOk) {
    reply = refuse(request->header, admitted);
  } else {
    uint32_t number = *worker_.findOst(request->header.chain);
    reply = co_await perform(worker_.reactor(), worker_.store(number), worker_.ost(number).name,
                             *request);
  }
  count(*request, reply, std::chrono::steady_clock::now() - begun);
  reply.charge = request->charge;
  request.reset();
  if (--executing_ == 0) worker_.executionOver();
  answer(std::move(reply));
}

void Connection::count(const Request& request, const Reply& reply, std::chrono::nanoseconds took) {
  auto& statistics = worker_.statistics();
  auto& operation = statistics.of(request.header.op);
  BulkHeader answer;
  std::memcpy(&answer, reply.head.data(), sizeof answer);
  auto status = answer.status;
  operation.latency.add(took);
  if (status == BulkStatus::kIoError) operation.errors.add();
  if (status != BulkStatus::kIoError && status != BulkStatus::kOk) operation.refused.add();
  if (status != BulkStatus::kOk) return;
  if (request.header.op == BulkOp::kWrite)
    statistics.bytesWritten.add(request.header.payloadBytes);
  else
    statistics.bytesRead.add(answer.payloadBytes);
}

void Connection::answer(Reply reply) {
  if (closing_) return requestOver(reply.charge);
  replies_.push_back(std::move(reply));
  wakeSender_.pulse();
}

void Connection::requestOver(size_t charge) {
  --inFlight_;
  charged_ -= charge;
  requestOver_.pulse();
}

Task<> Connection::send() {
  while (true) {
    if (closing_ || (!replies_.empty() && !co_await sendSome())) {
      close("sending failed");
      for (; !replies_.empty(); replies_.pop_front()) requestOver(replies_.front().charge);
    }
    if (!replies_.empty()) continue;
    if (sendFinished_) break;
    co_await wakeSender_;
  }
  senderOver_.set();
}

// Sends as many replies as fit into one message. False: the connection is broken.
Task<bool> Connection::sendSome() {
  std::vector<iovec> pieces;
  size_t count = 0;
  for (auto& reply : replies_) {
    if (count > 0 && pieces.size() + 1 + reply.payload.size() > kIovecsMax) break;
    pieces.push_back({reply.head.data(), reply.head.size()});
    pieces.insert(pieces.end(), reply.payload.begin(), reply.payload.end());
    ++count;
  }
  sending_ = true;
  for (size_t first = 0; first < pieces.size() && !closing_;) {
    sendingSince_ = std::chrono::steady_clock::now();
    msghdr message{};
    message.msg_iov = pieces.data() + first;
    message.msg_iovlen = pieces.size() - first;
    int result = co_await worker_.reactor().operate([&](io_uring_sqe* sqe) {
      io_uring_prep_sendmsg(sqe, socket_, &message, MSG_NOSIGNAL | MSG_WAITALL);
    });
    if (result == -EINTR || result == -EAGAIN) continue;
    if (result <= 0) co_return sending_ = false;
    size_t sent = result;
    for (; first < pieces.size() && sent >= pieces[first].iov_len; ++first)
      sent -= pieces[first].iov_len;
    if (sent > 0) {
      pieces[first].iov_base = static_cast<std::byte*>(pieces[first].iov_base) + sent;
      pieces[first].iov_len -= sent;
    }
  }
  sending_ = false;
  for (; count > 0; --count) {
    requestOver(replies_.front().charge);
    replies_.pop_front();
  }
  co_return true;
}

}  // namespace trainfs::oss
