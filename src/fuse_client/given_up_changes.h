// Changes that a soft mount has given up after they were sent: their callers have had EIO, and they
// may still happen when the MDS is back. Until their fate is known, no later change of what they
// touch is sent, or it could be undone by one that its caller thinks is over. Owned by the MDS
// thread.
#pragma once

#include <kj/async.h>

#include <unordered_map>
#include <vector>

#include "trainfs/types.h"

namespace trainfs::client {

class GivenUpChanges {
 public:
  void add(const std::vector<InodeId>& touched);
  void settled(const std::vector<InodeId>& touched);
  bool touchAny(const std::vector<InodeId>& inodes) const;
  kj::Promise<void> nextSettled();

 private:
  std::unordered_map<InodeId, uint32_t> touched_;  // by how many of them
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting_;
};

}  // namespace trainfs::client
