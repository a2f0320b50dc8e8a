// Where requests go: the OSTs of the cluster map, their connections, and the session that all of
// them speak for. Any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fuse_client/address_resolver.h"
#include "fuse_client/data_request.h"
#include "trainfs/cluster_map.h"

namespace trainfs::client {

class DataWorker;
class OssConnection;

struct Session {
  SessionId id;
  uint32_t epoch = 0;
  friend bool operator==(const Session&, const Session&) = default;
};

// Operations under way; further ones are answered EAGAIN. Callers bound theirs far below.
inline constexpr uint32_t kOperationsMax = 65536;

// Longest that a request waits before it is tried with whatever map there is.
inline constexpr std::chrono::milliseconds kMapPoll{100};

class RequestRouter {
 public:
  explicit RequestRouter(const DataClientOptions& options);
  ~RequestRouter();
  void start();
  void stop();  // everything completes with ESHUTDOWN before it returns

  void setMap(ClusterMap map);
  void setSession(Session session);
  void setRemoved(std::vector<InodeId> inodes);
  void onStaleSession(std::function<void()> callback);

  // Data ports of the OST of a chain; 0: no such OST is known.
  uint32_t portCount(ChainId chain) const;
  RequestPool& pool() { return pool_; }
  // Sends each of an operation's new requests on its way, under numbers of their own.
  void submit(Operation* operation, RequestList requests);
  // Completes an operation that needs no server, on a worker thread.
  void completeSoon(Operation* operation, int error);

  // Requests of unwanted operations that were never sent end with EINTR.
  void withdraw();

  // ---- for the workers and connections ----
  // To the best connection, or to a worker's parked ones when the OST is not known.
  void route(Request* request);
  std::optional<Session> session() const;  // none yet, before the first setSession
  // It must not be sent: it concerns an inode whose objects are gone, or is misplaced.
  bool isRefused(const Request& request) const;
  // An OSS says that this session is over; tells the owner, once per session and epoch.
  void staleSession(Session session);
  AddressResolver& resolver() { return resolver_; }
  void operationDone() { operations_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  // One OST. Connections by port and lane: [port * lanes + lane].
  struct Endpoint {
    uint32_t portCount = 0;
    std::vector<std::unique_ptr<OssConnection>> connections;
  };
  void updateEndpoint(const OstAddress& ost);
  OssConnection* choose(const Request& request);
  void split(Request* request);
  DataWorker& anyWorker(uint64_t hint) { return *workers_[hint % workers_.size()]; }
  uint32_t lanes() const { return options_.workers * options_.lanesPerWorker; }

  const DataClientOptions options_;
  RequestPool pool_;
  std::vector<std::unique_ptr<DataWorker>> workers_;
  std::atomic<uint64_t> nextRequestId_{1};
  std::atomic<uint32_t> operations_{0};

  mutable std::shared_mutex endpointsMutex_;
  uint64_t mapVersion_ = 0;
  std::unordered_map<uint32_t, Endpoint>
      endpoints_;  // by OST index; an OST that left the map stays
  std::vector<std::unique_ptr<OssConnection>> retired_;  // of OSTs whose number of ports changed

  mutable std::mutex sessionMutex_;
  std::optional<Session> session_;
  std::optional<Session> reportedStale_;
  std::function<void()> onStaleSession_;
  std::unordered_set<InodeId> removed_;
  std::atomic<bool> anyRemoved_{false};

  // Last: its thread calls into connections.
  AddressResolver resolver_;
};

}  // namespace trainfs::client
