// One connection (lane) to one data port of one OST: it sends frames, receives replies into the
// callers' memory, and after any failure connects again and resends what is unanswered, in order,
// under the same numbers.
//
// Who sends: the thread that has the request, without waiting, on the socket itself; when the
// socket is full, the worker goes on. Handing each request to the worker would cost a wake-up of
// another core (~18 us), a fifth of a small read; and the data of a write is warm in the sender's
// cache, which has just summed it. Only one thread sends at a time (pumping_); the others leave
// their requests in the queue, and the sender takes them along. Who receives: the worker that owns
// the connection, which also completes what it received.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fuse_client/address_resolver.h"
#include "fuse_client/data_request.h"
#include "fuse_client/reply_buffer.h"
#include "fuse_client/request_router.h"
#include "trainfs/ring.h"

namespace trainfs::client {

class DataWorker;

// A failed connection is tried again after 10 ms, doubling up to 1 s, each time between half of
// that and all of it.
inline constexpr std::chrono::milliseconds kBackoffLeast{10}, kBackoffMost{1000};
// From the start of connecting to the answer to the hello.
inline constexpr std::chrono::seconds kGreetingTimeout{10};
// kRetry: the same, from 5 ms up to 500 ms.
inline constexpr std::chrono::milliseconds kRetryLeast{5}, kRetryMost{500};
// A write whose sums the server finds wrong this often was changed in our memory: EIO.
inline constexpr uint32_t kBadWritesMax = 4;
// A read whose sums are wrong is read this often in all.
inline constexpr uint32_t kBadReadsMax = 2;

struct OssTarget {
  uint32_t ost = 0;
  std::string host;
  uint16_t tcpPort = 0;
  uint32_t chainVersion = 0;
};

class OssConnection {
 public:
  // lane: of this client's connections to that port; see BulkHeader::lane.
  OssConnection(DataWorker& worker, RequestRouter& router, OssTarget target, uint32_t lane,
                uint32_t window);
  ~OssConnection();

  // ---- any thread ----
  // False when the connection is retired or shut down: route again.
  bool submit(Request* request);
  void setTarget(OssTarget target);
  // Its OST has another number of ports now: what it has goes back to the router.
  void retire();
  DataWorker& worker() { return worker_; }
  uint32_t load() const { return load_.load(std::memory_order_relaxed); }

  // ---- the worker's thread ----
  // Does whatever is due. Harmless when nothing is.
  void attend();
  // Fails what is older, for `soft` mounts.
  void expire(Instant startedBefore);
  // Fails what nobody waits for and no server can have.
  void leaveOutUnwanted();
  // Nothing is under way and nothing ever will be.
  bool dead() const { return dead_.load(std::memory_order_acquire); }
  void failAll();
  // True the first time.
  bool markAttended() { return !attendedOnce_ && (attendedOnce_ = true); }
  // For the worker's inbox: true when it was not wanted yet.
  bool wantAttention() { return !attentionWanted_.exchange(true, std::memory_order_acq_rel); }
  void attentionGiven() { attentionWanted_.store(false, std::memory_order_release); }

 private:
  // No socket (idle), or one on its way up, in use, or being given up.
  enum class State { kIdle, kResolving, kConnecting, kGreeting, kReady, kClosing };
  struct Event final : Completion {
    Event(OssConnection& owner, void (OssConnection::*handler)(int))
        : owner(owner), handler(handler) {}
    void completed(int result) override { (owner.*handler)(result); }
    OssConnection& owner;
    void (OssConnection::*handler)(int);
  };
  // What becomes of an answered request.
  struct Outcome {
    int error = 0;
    bool again = false;
    std::chrono::milliseconds delay{0};
  };

  // Connecting (oss_connection.cc)
  void startConnecting();
  void openSocket(const SocketAddress& address);
  void connected(int result);
  void sendHello();
  void greeted();
  void sessionRefused();
  void ready();
  void useResolved();
  void breakOff(const std::string& reason);
  void tryClose();
  void cancelled(int result);
  std::string reasonToBreak();
  void whenIdle();
  std::string name();
  // Those of the queue that are concerned end with that error.
  template <typename Concerned>
  void failQueued(Concerned concerned, int error);
  void failTaken(RequestList taken, int error);
  void failRefused();

  // Sending (oss_sending.cc)
  void pump();
  Request* startNext();
  void buildHead(const Request& request);
  ssize_t sendSome();
  void writable(int result);
  void finishDeferred();
  void waitUntilWritable();

  // Receiving (oss_receiving.cc)
  void armReceive();
  void received(int result);
  bool takeReplies();
  bool handleReply();
  void takeAnswers(Request& request);
  void startPayload(Request* request);
  void advancePayload(size_t bytes);
  bool takePayload();
  void finishRead();
  Outcome refused(Request& request);
  void settle(Request* request, const Outcome& outcome);

  io_uring_sqe* arm(Event& event);

  DataWorker& worker_;
  RequestRouter& router_;
  const uint32_t lane_;
  const uint32_t window_;
  std::atomic<uint32_t> load_{0};
  std::atomic<bool> attentionWanted_{false};
  std::atomic<bool> dead_{false};

  std::mutex mutex_;  // down to the blank line
  OssTarget target_;
  bool targetChanged_ = false;
  bool retired_ = false;
  bool open_ = false;     // greeted, and not broken: senders may use fd_
  bool pumping_ = false;  // some thread is sending; fd_ stays open until it is done
  bool blocked_ = false;  // the socket is full
  int sendError_ = 0;
  RequestList queue_;            // not sent
  RequestList sent_;             // sent or being sent, in order, not answered
  RequestList refused_;          // taken out of queue_, for they must not be sent
  Request* sending_ = nullptr;   // the last of sent_, while not all of it has left
  Request* deferred_ = nullptr;  // answered before its send returned: settled after that
  Outcome deferredOutcome_;
  struct Resolved {
    std::string host, wrong;
    SocketAddress address;
  };
  std::optional<Resolved> resolved_;

  // Of whoever is pumping.
  alignas(8) std::byte head_[kBulkHeadBytesMax];
  size_t headBytes_ = 0;
  size_t sendOffset_ = 0;  // within the frame

  // The worker's, apart from fd_, session_ and those are constant while open_.
  State state_ = State::kIdle;
  int fd_ = -1;
  Session session_;
  std::optional<Session> stale_;  // the server refused it: tried again once a second
  SocketAddress address_;
  uint32_t underWay_ = 0;  // ring operations
  bool polling_ = false;
  bool attendedOnce_ = false;
  bool complained_ = false;  // one log line per outage
  Instant connectAfter_{};
  Instant greetBy_{};
  std::chrono::milliseconds backoff_ = kBackoffLeast;
  ReplyBuffer buffer_;
  ReplyHead reply_;
  Request* reading_ = nullptr;  // whose payload is due
  size_t skipBytes_ = 0;        // of a payload that nobody waits for
  std::vector<iovec> parts_;    // where the rest of the payload goes
  size_t nextPart_ = 0;
  msghdr message_{};
  Event connected_{*this, &OssConnection::connected};
  Event received_{*this, &OssConnection::received};
  Event writable_{*this, &OssConnection::writable};
  Event cancelled_{*this, &OssConnection::cancelled};
};

}  // namespace trainfs::client
