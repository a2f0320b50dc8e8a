// One client connection of a data worker: frames in, requests executed side by side, replies out in
// the order in which they are done. Belongs to the worker's reactor.
//
// Bounded: kRequestsMax requests from their frame until their reply is sent, which take
// kBufferShare of the worker's buffers; while there are that many, or no buffer for the next, the
// socket is not read. A peer that stops in the middle of a frame or does not take its replies is
// cut off after kStallMax, one that does not say hello after kGreetingMax.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "oss/frame_reader.h"
#include "oss/request.h"
#include "oss/session_table.h"

namespace trainfs::oss {

class DataWorker;

class Connection {
 public:
  // Owns the socket.
  Connection(DataWorker& worker, int socket, std::string peer, uint64_t serial);
  ~Connection();
  Connection(const Connection&) = delete;

  // Runs until the connection is over, then tells the worker, which destroys it.
  Task<> run();

  // Nothing more of it is executed or sent; what is being executed goes on to its end.
  void close(const std::string& reason);
  // Takes no more requests; the replies of those it has are sent.
  void finish();
  void closeIfStalled(std::chrono::steady_clock::time_point now);

  // Valid from the hello's arrival on.
  bool hasSession() const { return greeting_; }
  bool closing() const { return closing_; }
  SessionId session() const { return session_; }
  uint32_t epoch() const { return epoch_; }
  uint32_t lane() const { return lane_; }
  uint64_t serial() const { return serial_; }
  bool executes() const { return executing_ > 0; }
  uint32_t executing() const { return executing_; }

 private:
  static constexpr uint32_t kRequestsMax = 64;
  static constexpr size_t kBufferShare = 16 * kMiB;  // one request may take more, if it is alone
  static constexpr std::chrono::seconds kStallMax{60};
  static constexpr std::chrono::seconds kGreetingMax{10};
  static constexpr size_t kIovecsMax = 128;
  using Instant = std::chrono::steady_clock::time_point;

  Task<> receive();
  Task<bool> receiveMore();
  Task<> takeBuffer();
  Task<> handleFrame();
  Task<> handleHello(BulkHeader header);
  Task<> handleRequest(std::unique_ptr<Request> request);
  Task<> serve(std::unique_ptr<Request> request, BulkStatus admitted);
  Task<BulkStatus> verify(const BulkHeader& header);
  BulkStatus admit(Request& request);
  void count(const Request& request, const Reply& reply, std::chrono::nanoseconds took);
  void answer(Reply reply);
  Task<> send();
  Task<bool> sendSome();
  void requestOver(size_t charge);
  bool peerIsGone() const;

  DataWorker& worker_;
  const int socket_;
  const std::string peer_;
  const uint64_t serial_;
  FrameReader reader_;
  BufferPool::Buffer buffer_;  // of the frame being received
  size_t charge_ = 0;          // for it

  bool greeting_ = false;  // a hello has come
  bool greeted_ = false;   // and was answered well
  SessionId session_;
  uint32_t epoch_ = 0, lane_ = 0;
  std::vector<uint32_t> verified_;  // per OST: the registration in which the MDS knew the session

  bool closing_ = false, finishing_ = false, sendFinished_ = false;
  uint32_t inFlight_ = 0, executing_ = 0;
  size_t charged_ = 0;  // by requests in flight
  Event requestOver_;   // pulses
  Event wakeSender_;    // pulses
  Event senderOver_;
  std::deque<Reply> replies_;
  Instant receivingSince_, sendingSince_;
  bool receiving_ = false, sending_ = false;
};

}  // namespace trainfs::oss
