// The listening end of an MDS: connections in, one bootstrap object each. Owned by the MDS event
// loop.
#pragma once

#include <kj/async-io.h>

#include <memory>

#include "mds/core.h"

namespace trainfs::mds {

class Server final : private kj::TaskSet::ErrorHandler {
 public:
  // Serves what comes in on `listener`. Store, log, timer and listener must outlive the server.
  Server(Store& store, Log& log, kj::Timer& timer, kj::Own<kj::ConnectionReceiver> listener,
         ServerOptions options);
  ~Server() noexcept(false);

  // Takes no more connections and refuses every further request. What is in the log is not touched.
  void stop();

  uint16_t port() { return listener_->getPort(); }
  Core& core() { return *core_; }

 private:
  struct Connection;
  kj::Promise<void> acceptForever();
  kj::Promise<void> publishForever();
  kj::Promise<void> serve(kj::Own<kj::AsyncIoStream> stream);
  void noteRefusal(kj::AsyncIoStream& stream);
  void taskFailed(kj::Exception&& exception) override;

  kj::Own<kj::ConnectionReceiver> listener_;
  kj::Timer& timer_;
  std::shared_ptr<Core> core_;
  uint32_t connections_ = 0;
  uint32_t refusals_ = 0;  // not told yet
  kj::TimePoint nextRefusalTold_ = kj::origin<kj::TimePoint>();
  kj::Promise<void> accepting_, publishing_;
  kj::TaskSet tasks_;
};

}  // namespace trainfs::mds
