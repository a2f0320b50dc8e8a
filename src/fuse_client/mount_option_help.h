// The options of -o, as the help of trainfs-client and of mount.trainfs lists them;
// mount.trainfs(8) says more.
#pragma once

namespace trainfs::client {

inline constexpr const char* kMountOptionHelp =
    "Mount options:\n"
    "  hard, soft             wait for a server that is away, for ever (default), or fail with "
    "EIO\n"
    "  soft_timeout=SECONDS   after that long, with soft; default 60\n"
    "  connect_timeout=SECONDS  how long to look for an MDS when mounting; default 10\n"
    "  flock, localflock, noflock  locks keep out all mounts (default), this one only, nobody\n"
    "  allow_other, noallow_other  whether other users may use the mount; they may\n"
    "  uring=off|auto|on      requests over io_uring: never (default), where it can be had, or "
    "fail\n"
    "  io_uring_q_depth=N     requests per processor under way over io_uring, 1 to 1024\n"
    "  readahead_kb=N         what the kernel reads ahead; default 4096\n"
    "  threads=N, data_workers=N, lanes=N  threads for requests and data, connections of each\n"
    "  log_file=FILE, log_level=LEVEL, metrics_listen=HOST:PORT\n"
    "  ro, rw, noatime, nosuid, nodev, noexec, remount, _netdev, nofail, ...  as in mount(8)\n"
    "Examples:\n"
    "  mount -t trainfs mds1:/trainfs /mnt/trainfs\n"
    "  mount -t trainfs mds1:/trainfs/datasets /data -o ro,uring=auto,readahead_kb=16384\n"
    "  mds1:/trainfs /mnt/trainfs trainfs _netdev,nofail 0 0     (a line of /etc/fstab)\n";

}  // namespace trainfs::client
