// A connection of tfs to one MDS: greeted, checked to serve the file system, with a bound on the
// time that everything on it takes together. With cluster.cc and changelog_client.cc all of tfs
// that knows kj. Throws kj::Exception.
#pragma once

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>

#include <functional>
#include <string>

#include "mds.capnp.h"
#include "mounts.h"

namespace trainfs::tfs {

class MdsConnection {
 public:
  MdsConnection(kj::AsyncIoContext& io, const MdsAddress& server, const std::string& fsname,
                kj::Duration patience);

  rpc::Mds::Client mds() { return client_->bootstrap().castAs<rpc::Mds>(); }
  uint16_t mdtIndex() const { return mdtIndex_; }

  template <typename Request>
  auto call(Request&& request) {
    return bounded(request.send());
  }

 private:
  auto bounded(auto promise) {
    return timer_.timeoutAt(deadline_, kj::mv(promise)).wait(io_.waitScope);
  }

  kj::AsyncIoContext& io_;
  kj::Timer& timer_;
  const kj::TimePoint deadline_;
  kj::Own<kj::AsyncIoStream> stream_;
  kj::Own<capnp::TwoPartyClient> client_;
  uint16_t mdtIndex_ = 0;
};

// Asks the servers of the mount one after another until one has answered: an exception of
// `question` is no answer. Returns nothing then; else why nobody has, for a person to read.
std::string askServers(const Mount& mount,
                       const std::function<void(MdsConnection&, const MdsAddress&)>& question);

// HOST:PORT, an IPv6 address in brackets.
std::string nameOf(const MdsAddress& server);

// What a person wants to read of it.
std::string words(const kj::Exception& exception);

}  // namespace trainfs::tfs
