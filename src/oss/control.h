// The OSS's side of the control plane: keeps every OST registered with the MDS, asks it about
// sessions on behalf of the data workers, and carries out what it orders (oss.capnp).
//
// Belongs to the main thread and its kj event loop, but for check(). The only kj user in the OSS,
// with control_rpc and main.
#pragma once

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>

#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mds.capnp.h"
#include "oss.capnp.h"
#include "oss/data_worker.h"
#include "trainfs/config.h"

namespace trainfs::oss {

class Control final : public SessionVerifier, private kj::TaskSet::ErrorHandler {
 public:
  struct Config {
    std::string advertisedHost;   // empty: the address by which this process reaches the MDS
    std::vector<uint16_t> ports;  // of the data workers
    bool acceptOlderCopy = false;
  };

  Control(kj::Network& network, kj::Timer& timer, Config config,
          std::span<const std::unique_ptr<Ost>> osts, SessionTable& sessions);
  ~Control();

  // Serves with these workers until `stop` resolves: then true. False: the MDS will never take us.
  kj::Promise<bool> run(std::span<const std::unique_ptr<WorkerThread>> workers,
                        kj::Promise<void> stop);

  // What is asked and will be asked gets no answer from the MDS any more. After run().
  void endChecks();

  void check(uint32_t ost, SessionId session, uint32_t epoch,
             std::function<void(Verdict)> done) override;

 private:
  struct Check {
    uint32_t ost;
    SessionId session;
    uint32_t epoch;
    std::function<void(Verdict)> done;
  };
  static constexpr kj::Duration kConnectMax = 5 * kj::SECONDS;
  static constexpr kj::Duration kCallMax = 10 * kj::SECONDS;
  static constexpr kj::Duration kCheckMax = 5 * kj::SECONDS;
  static constexpr kj::Duration kRenewEvery = 2 * kj::SECONDS;
  static constexpr kj::Duration kBackoffLeast = 200 * kj::MILLISECONDS;
  static constexpr kj::Duration kBackoffMost = 1 * kj::SECONDS;  // clients wait for us then

  kj::Promise<void> keepRegistered(uint32_t number);
  kj::Promise<void> holdRegistration(uint32_t number, std::string node);
  kj::Promise<void> registerOst(uint32_t number, rpc::Mds::Client mds, std::string localHost);
  using Registered = capnp::Response<rpc::Mds::RegisterOstResults>;
  kj::Promise<Registered> offerStart(uint32_t number, rpc::Mds::Client mds, std::string host);
  kj::Promise<void> renew(uint32_t number);
  std::chrono::steady_clock::time_point endOfLease(
      uint32_t number, std::chrono::steady_clock::time_point sent) const;
  bool fillStats(uint32_t number, rpc::OstStats::Builder stats);
  kj::Promise<void> answerChecks();
  kj::Promise<void> answer(Check check);
  void taskFailed(kj::Exception&& exception) override;

  struct Lease {
    std::optional<rpc::OstLease::Client> client;  // none: not registered
    uint32_t termMilliseconds = 0;
    bool reported = false;  // that the MDS is away: once is enough
  };

  kj::Network& network_;
  kj::Timer& timer_;
  const Config config_;
  const std::span<const std::unique_ptr<Ost>> osts_;
  SessionTable& sessions_;
  std::span<const std::unique_ptr<WorkerThread>> workers_;
  std::vector<Lease> leases_;  // one per OST
  kj::Own<kj::PromiseFulfiller<void>> fatal_;

  std::mutex mutex_;                                     // guards what follows
  std::vector<Check> checks_;                            // at most one per connection
  kj::Own<kj::CrossThreadPromiseFulfiller<void>> wake_;  // null: nobody waits
  bool ended_ = false;

  kj::TaskSet tasks_;  // last: it uses all of the above
};

}  // namespace trainfs::oss
