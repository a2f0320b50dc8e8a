// The session on the MDS thread: finds a server, opens or resumes the session, renews it, runs
// calls through it. Everything here belongs to that thread's event loop.
#pragma once

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <kj/timer.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuse_client/given_up_changes.h"
#include "fuse_client/mds_call.h"
#include "fuse_client/mds_client.h"
#include "fuse_client/mds_slots.h"

namespace trainfs::client {

class MdsSession final : private kj::TaskSet::ErrorHandler {
 public:
  // Called once, with nothing when the first session is open; or each time a round over all servers
  // failed.
  using FirstSession = std::function<void(std::optional<std::string> failure)>;

  MdsSession(const MdsClientOptions& options, MdsEvents& events, MdsInbox& inbox,
             kj::AsyncIoContext& io, FirstSession onFirst);
  ~MdsSession() noexcept(false);

  void submit(std::unique_ptr<MdsCall> call);
  void check();  // renew now
  // Ends the session at the server, once every mutation submitted before is answered.
  kj::Promise<void> end();

 private:
  // One connection. Lives until it is lost and no call uses it.
  struct Connection : kj::Refcounted {
    Connection(kj::Own<kj::AsyncIoStream> stream)
        : stream(kj::mv(stream)), rpc(*this->stream), mds(rpc.bootstrap().castAs<rpc::Mds>()) {}
    // Every call on it fails now: those under way hold it, and its peer may say nothing any more.
    void breakOff();

    kj::Own<kj::AsyncIoStream> stream;
    capnp::TwoPartyClient rpc;
    rpc::Mds::Client mds;
    std::optional<rpc::Session::Client> session;
  };
  class Callback;

  kj::Promise<void> stayConnected();
  kj::Promise<kj::Own<Connection>> findServer();
  kj::Promise<kj::Own<Connection>> connectTo(const HostPort& server);
  kj::Promise<void> openSession(Connection& connection);
  void adopt(Connection& connection, rpc::SessionOpened::Reader opened, bool fresh, bool mayCache,
             BootClock::time_point asked);
  kj::Promise<void> renewUntilLost(Connection& connection);
  void noteHeard(BootClock::time_point sent);

  kj::Promise<void> run(std::unique_ptr<MdsCall> call);
  kj::Promise<bool> comesToItsTurn(MdsCall& call);
  kj::Promise<void> attempts(MdsCall& call);
  bool mayLinger(const MdsCall& call, bool& lingering);
  void giveUp(MdsCall& call);
  void noteAnswered(const MdsCall& call, kj::TimePoint started);
  kj::Promise<void> nextConnection();
  void taskFailed(kj::Exception&& exception) override;

  const MdsClientOptions& options_;
  MdsEvents& events_;
  MdsInbox& inbox_;
  kj::Network& network_;
  kj::Timer& timer_;
  FirstSession onFirst_;

  kj::Own<Connection> connection_;  // with a session; null while there is none
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> awaitConnection_;
  kj::Own<kj::PromiseFulfiller<void>> renewNow_;
  MdsSlots slots_;
  GivenUpChanges givenUp_;
  uint64_t sessionId_ = 0;  // 0: none yet
  uint32_t epoch_ = 0;
  uint64_t resumptions_ = 0;  // asked for
  uint64_t incarnation_ = 0;  // counts sessions, not connections
  kj::Duration term_ = 10 * kj::SECONDS;
  kj::Promise<void> lapse_ = nullptr;  // waits for the end of what the last answer is good for
  uint32_t mutations_ = 0;             // submitted, not answered
  size_t lingering_ = 0;               // calls that have failed, and are sent all the same
  kj::Own<kj::PromiseFulfiller<void>> quiet_;  // somebody waits for that
  bool ended_ = false;
  kj::TaskSet tasks_;
};

}  // namespace trainfs::client
