// A client's session as its peer sees it: decodes, asks Operations, encodes. One object per
// attachment.
#pragma once

#include <memory>

#include "mds.capnp.h"
#include "mds/core.h"

namespace trainfs::mds {

rpc::Session::Client makeSessionRpc(std::shared_ptr<Core> core, std::shared_ptr<Session> session,
                                    uint64_t attachment);

}  // namespace trainfs::mds
