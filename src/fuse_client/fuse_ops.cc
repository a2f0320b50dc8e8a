#include "fuse_client/fuse_ops.h"

#include <spdlog/spdlog.h>

#include "fuse_client/client.h"
#include "fuse_client/fuse_counting.h"
#include "fuse_client/fuse_request.h"

namespace trainfs::client {

namespace {

constexpr uint32_t kReadaheadBytes = 4 << 20;
constexpr uint32_t kBackgroundMax = 128;  // read-ahead and asynchronous direct requests in flight

struct Feature {
  uint64_t flag;
  const char* name;
};
constexpr Feature kWanted[] = {
    {FUSE_CAP_ASYNC_READ, "async_read"},
    {FUSE_CAP_ASYNC_DIO, "async_dio"},
    {FUSE_CAP_PARALLEL_DIROPS, "parallel_dirops"},
    {FUSE_CAP_READDIRPLUS, "readdirplus"},
    {FUSE_CAP_READDIRPLUS_AUTO, "readdirplus_auto"},
    {FUSE_CAP_EXPLICIT_INVAL_DATA, "explicit_inval_data"},
    {FUSE_CAP_DIRECT_IO_ALLOW_MMAP, "direct_io_allow_mmap"},
    {FUSE_CAP_HANDLE_KILLPRIV_V2, "handle_killpriv_v2"},
    {FUSE_CAP_EXPORT_SUPPORT, "export_support"},
    {FUSE_CAP_CACHE_SYMLINKS, "cache_symlinks"},
    {FUSE_CAP_POSIX_ACL, "posix_acl"},
    {FUSE_CAP_DONT_MASK, "dont_mask"},  // the MDS knows whether the umask counts
};
constexpr Feature kForLocks[] = {{FUSE_CAP_POSIX_LOCKS, "posix_locks"},
                                 {FUSE_CAP_FLOCK_LOCKS, "flock_locks"}};
// Each would break something: stale bytes (library defaults), sizes that the kernel owns, O_TRUNC
// without SETATTR.
constexpr uint64_t kUnwanted[] = {FUSE_CAP_AUTO_INVAL_DATA, FUSE_CAP_WRITEBACK_CACHE,
                                  FUSE_CAP_ATOMIC_O_TRUNC, FUSE_CAP_SPLICE_READ,
                                  FUSE_CAP_SPLICE_WRITE};

void init(void* userdata, fuse_conn_info* connection) {
  auto& client = *static_cast<Client*>(userdata);
  auto& features = client.kernelFeatures();
  auto want = [&](const Feature& wanted) {
    bool set = fuse_set_feature_flag(connection, wanted.flag);
    (set ? features.inUse : features.missing).emplace_back(wanted.name);
  };
  for (auto& wanted : kWanted) want(wanted);
  for (auto flag : kUnwanted) fuse_unset_feature_flag(connection, flag);
  // Without them the kernel keeps locks itself, among the processes of this mount.
  for (auto& wanted : kForLocks) {
    if (client.locking() == Locking::kLocal)
      fuse_unset_feature_flag(connection, wanted.flag);
    else
      want(wanted);
  }
  connection->max_write = kRequestBytesMax;
  connection->max_readahead = std::min(connection->max_readahead, kReadaheadBytes);
  connection->max_background = kBackgroundMax;
  connection->congestion_threshold = kBackgroundMax;
  connection->time_gran = 1;
  features.offersUring = (connection->capable_ext & FUSE_CAP_OVER_IO_URING) != 0;
  features.protocolMajor = connection->proto_major;
  features.protocolMinor = connection->proto_minor;
  features.maxWriteBytes = connection->max_write;
  features.maxReadaheadBytes = connection->max_readahead;
}

void forget(fuse_req_t req, fuse_ino_t node, uint64_t lookups) {
  static_cast<Client*>(fuse_req_userdata(req))->inodes().forget(inodeOf(req, node), lookups);
  fuse_reply_none(req);
}

void forgetMulti(fuse_req_t req, size_t count, fuse_forget_data* forgets) {
  auto& inodes = static_cast<Client*>(fuse_req_userdata(req))->inodes();
  for (size_t i = 0; i < count; ++i)
    inodes.forget(inodeOf(req, forgets[i].ino), forgets[i].nlookup);
  fuse_reply_none(req);
}

void statfs(fuse_req_t req, fuse_ino_t) {
  auto request = Request::begin(req);
  if (fuse_req_is_uring(req)) request->client().kernelFeatures().cameByUring = true;
  request->client().mds().statfs([request](Result<FsStats> stats) {
    if (!stats) return request->error(stats.error().code());
    request->statfs(*stats);
  });
}

}  // namespace

fuse_lowlevel_ops fuseOps() {
  fuse_lowlevel_ops ops{};
  ops.init = init;
  ops.forget = forget;
  ops.forget_multi = forgetMulti;
  ops.statfs = statfs;
  addMetaOps(ops);
  addXattrOps(ops);
  addDirOps(ops);
  addFileOps(ops);
  addLockOps(ops);
  addControlOps(ops);
  countRequests(ops);
  return ops;
}

}  // namespace trainfs::client
