// One thread of a DataClient: a ring, the connections whose replies it receives, and the requests
// that wait for a better moment. All completions run here.
//
// A worker is woken from another thread only for what is rare: a connection to be made or broken, a
// socket that was full, an answer that overtook the return of its own send. Ordinary requests never
// wake it, see OssConnection.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "fuse_client/data_request.h"
#include "trainfs/ring.h"

namespace trainfs::client {

class OssConnection;
class RequestRouter;

// Submission queue entries. A connection has at most two operations under way, so this many are
// rarely exceeded, and then only cost one more submit.
inline constexpr uint32_t kRingEntries = 256;

class DataWorker {
 public:
  DataWorker(RequestRouter& router, const DataClientOptions& options);
  ~DataWorker();

  // Throws std::system_error where there is no io_uring.
  void start();
  // From now on everything fails with ESHUTDOWN; join() returns when the last completion has run.
  void beginStop();
  void join();

  // ---- any thread ----
  // Has the connection's attend() called soon; once, however often it was asked for since.
  void attend(OssConnection& connection);
  // Routes the request again after the delay.
  void park(Request* request, std::chrono::milliseconds delay);
  // Completes an operation that has no requests.
  void complete(Operation* operation);
  // Routes what is parked now: there is a newer map or session.
  void unpark();
  // Leaves out what of unwanted operations was never sent.
  void withdraw();
  bool stopping() const { return stopping_.load(std::memory_order_acquire); }
  // Requests that its connections have to answer; the router spreads by it.
  std::atomic<uint32_t>& load() { return load_; }

  // ---- the worker's own thread ----
  Ring& ring() { return *ring_; }
  // Has the connection's attend() called at that time.
  void attendAt(OssConnection& connection, Instant when);
  // One request of an operation is answered: gives it back, and completes the operation after its
  // last.
  void finish(Request* request, int error);
  // Fails what is left when no worker runs any more; on the thread that destroys the client.
  bool failLeftovers();

 private:
  struct Inbox {
    std::vector<OssConnection*> connections;
    std::vector<std::pair<Request*, std::chrono::milliseconds>> parked;
    std::vector<Operation*> operations;
    bool unpark = false, withdraw = false;
    bool empty() const {
      return connections.empty() && parked.empty() && operations.empty() && !unpark && !withdraw;
    }
  };
  template <typename Put>
  void put(Put put);
  void run(std::promise<void>& started);
  void conclude(Operation* operation);
  bool handleInbox();
  void runTimers();
  void routeParked(bool all, Instant now);
  void leaveOutUnwanted();
  void expire(Instant now);
  // Those of the parked that are concerned end with that error.
  template <typename Concerned>
  void failParked(Concerned concerned, int error);
  std::chrono::milliseconds untilNextTimer() const;
  bool drained() const;

  RequestRouter& router_;
  const DataClientOptions& options_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint32_t> load_{0};

  mutable std::mutex mutex_;  // inbox_, and waker_'s being there
  Inbox inbox_;
  std::unique_ptr<Waker> waker_;

  std::unique_ptr<Ring> ring_;
  std::vector<OssConnection*> connections_;  // every one that was ever attended, in no order
  std::multimap<Instant, OssConnection*> attendAt_;
  std::multimap<Instant, Request*> parked_;
  std::optional<Instant> nextExpiry_;  // `soft` only
};

}  // namespace trainfs::client
