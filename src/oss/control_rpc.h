// The OssControl capability that an MDS gets for one OST: hands its orders to the data workers and
// answers when they are carried out.
#pragma once

#include <span>

#include "oss.capnp.h"
#include "oss/data_worker.h"

namespace trainfs::oss {

// `ost` counts the OSTs of this process; the lease is its. Lives on the control thread's event
// loop; what is passed by reference and the workers outlive that loop's turns.
rpc::OssControl::Client makeOssControl(uint32_t ost, const Lease& lease, SessionTable& sessions,
                                       std::span<const std::unique_ptr<WorkerThread>> workers);

}  // namespace trainfs::oss
