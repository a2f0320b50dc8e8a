// What the leader chooses before a command is logged, so that apply() need not: time, inode
// numbers, chains. Owned by the MDS event loop.
#pragma once

#include "mds/cluster_map.h"
#include "mds/namespace.h"
#include "trainfs/result.h"

namespace trainfs::mds {

class Choices {
 public:
  Choices(const View& view, const OstTable& osts);

  // The wall clock, never going back from one command to the next, over restarts either: clients
  // know by ctime which of two answers is the newer one.
  Time now();
  InodeId newInode();

  // The layout of a new file. Where no OST has room, or it is not known yet which ones serve, the
  // file is created without chains; its first write asks again, and waits or gets the ENOSPC.
  Result<Layout> place(const Layout& layout);
  Result<std::vector<ChainId>> chains(const Component& component);

 private:
  const OstTable& osts_;
  Time last_;
  uint64_t nextInode_;
  uint64_t turn_ = 0;
};

}  // namespace trainfs::mds
