// A mount's source and options, and a line of the kernel's about a mount: refused in words, or
// values within their limits.
#include "fuse_client/mount_options.h"
#include "fuse_client/remount.h"
#include "target.h"

using namespace trainfs;
using namespace trainfs::client;
using fuzz::require;

std::vector<std::string> fuzz::seeds() {
  return {"mds1:/trainfs",
          "mds1:7171,[fe80::1%eth0]:99,10.0.0.1:/trainfs",
          "host:/fs/sub/dir",
          "ro,soft,soft_timeout=60,connect_timeout=10,threads=4,data_workers=2,lanes=1,uring=auto",
          "io_uring_q_depth=128,readahead_kb=4096,log_file=/x,log_level=debug,_netdev,nofail",
          "36 35 0:41 / /mnt/a\\040b rw,noatime shared:1 - fuse.trainfs mds1:/trainfs rw,user_id=0",
          "rw,nosuid,nodev,context=\"a,b\",x-systemd.automount,comment=hello,noallow_other,hard"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(fuzz::text(data, size));
  MountOptions fromSource;
  if (parseSource(text, fromSource).empty()) {
    require(!fromSource.fsname.empty() && fromSource.fsname.find('/') == std::string::npos);
    require(!fromSource.servers.empty());
    for (auto& server : fromSource.servers) require(!server.host.empty() && server.port != 0);
  }
  for (bool sloppy : {false, true}) {
    MountOptions options;
    if (!parseOptionList(text, sloppy, options).empty()) continue;
    require(options.threads <= 64 && options.dataWorkers >= 1 && options.dataWorkers <= 16);
    require(options.lanes >= 1 && options.lanes <= 8 && options.uringQueueDepth <= 1024);
    require(options.softTimeout.count() >= 1 && options.connectTimeout.count() >= 1);
  }
  if (MountLine line; parseMountLine(text, line)) {
    require(!line.type.empty() && line.mountPoint.size() <= text.size());
    mountFlags(line);
  }
  if (text.find('\0') != text.npos) return 0;
  const char* arguments[] = {"trainfs-client", "-o", text.c_str(), text.c_str(), "/mnt"};
  MountOptions options;
  if (auto usage = parseMountOptions(5, arguments, options)) require(!usage->text.empty());
  return 0;
}
