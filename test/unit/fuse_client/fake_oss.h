// An OSS in memory for tests of the data client: it speaks bulk frames as docs/format-bulk.md has
// them, and spoils some on purpose. One thread per connection.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "trainfs/bulk.h"
#include "trainfs/cluster_map.h"
#include "trainfs/object_id.h"

namespace trainfs::client {

enum class Fault {
  kNone,
  kCloseBefore,     // nothing done, no reply
  kCloseAfter,      // done, but no reply
  kCloseInHead,     // half a head
  kCloseInPayload,  // head, half the payload
  kSpoiltData,      // one payload byte differs from what its sum is of; no payload: as kGarbage
  kWrongSumCount,   // one sum too few for the payload
  kOtherObject,     // well-formed, but answers something that was not asked
  kShortWrite,      // says that a byte less was written
  kRetry,
  kStaleChain,
  kBadSum,  // claims that a write's sum is wrong
  kLate,    // answered after the frames that follow
  kTwice,   // answered twice
  kEarly,   // refused before the request's payload has been received
  kGarbage,
};
inline constexpr int kFaults = static_cast<int>(Fault::kGarbage) + 1;

class FakeOss {
 public:
  // Chooses what goes wrong with a request; called under a lock.
  using Choose = std::function<Fault(const BulkHeader&)>;

  FakeOss(uint32_t index, uint32_t portCount);
  ~FakeOss() { stop(); }

  void start(uint32_t portCount);  // again on new ports, with the objects it had
  void stop();
  void chooseFaults(Choose choose);
  void setSession(uint64_t session, uint32_t epoch);  // any other is stale
  void setChainVersion(uint32_t version) { chainVersion_ = version; }
  void setVerifier(uint64_t verifier) { verifier_ = verifier; }

  OstAddress address() const;
  uint64_t hellos() const { return hellos_; }
  uint64_t requests() const { return requests_; }
  std::optional<std::vector<std::byte>> object(const ObjectId& id);

 private:
  struct Frame {
    BulkHeader header;
    std::vector<BulkExtent> extents;
    std::vector<uint64_t> sums;
    std::vector<std::byte> payload;
  };
  struct Connection {
    int fd = -1;
    std::thread thread;
    bool over = false;  // under mutex_, as lanes_
    uint32_t port = 0;
    std::optional<Frame> late;
  };
  void accept(int listener, uint32_t port);
  void serve(Connection& connection);
  bool receive(Connection& connection, Frame& frame, Fault& fault);
  bool answer(Connection& connection, const Frame& request, Fault fault);
  void greet(Connection& connection, const Frame& hello, Frame& reply);
  void execute(const Frame& request, Frame& reply);
  bool sendFrame(Connection& connection, Frame& frame, Fault fault);
  static Frame replyTo(const BulkHeader& request, BulkStatus status);

  const uint32_t index_;
  std::vector<int> listeners_;
  std::vector<uint16_t> ports_;
  std::vector<std::thread> acceptors_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> hellos_{0}, requests_{0};
  std::atomic<uint32_t> chainVersion_{1};
  std::atomic<uint64_t> verifier_{1};

  std::mutex mutex_;
  std::condition_variable over_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::map<std::pair<uint32_t, uint32_t>, Connection*> lanes_;  // (port, lane)
  Choose choose_;
  std::pair<uint64_t, uint32_t> session_{1, 1};
  std::map<ObjectId, std::vector<std::byte>> objects_;
};

}  // namespace trainfs::client
