// The bootstrap interface of an MDS, one object per connection, and the leases of OSTs.
#pragma once

#include <memory>
#include <string>

#include "mds.capnp.h"
#include "mds/core.h"

namespace trainfs::mds {

// `peerHost`: the numeric address that the connection came from.
rpc::Mds::Client makeMdsRpc(std::shared_ptr<Core> core, std::string peerHost);

}  // namespace trainfs::mds
