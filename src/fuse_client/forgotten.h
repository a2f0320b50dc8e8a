// What must outlive an inode that the kernel has forgotten, because its next fsync has to know:
// which of its changes are not synced, and losses that nobody has been told of. One per mount; any
// thread.
//
// Bounded: beyond kObjectsMax the oldest go, and all that stays of them is what their OSTs had
// answered with. From then on a file of unknown past may get an EIO too many after a crash of such
// an OST, but never a success too many.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <unordered_map>

#include "fuse_client/data_client.h"
#include "trainfs/types.h"

namespace trainfs::client {

// An object with changes that no fsync has covered yet.
struct Unsynced {
  ChainId chain;
  uint64_t verifier = 0;  // that they were answered with
};
using UnsyncedObjects = std::map<ObjectId, Unsynced>;

class Forgotten {
 public:
  static constexpr size_t kObjectsMax = 64 * 1024;  // an inode without any counts as one

  struct Past {
    UnsyncedObjects unsynced;
    bool lossUntold = false;
    bool strayBytes = false;  // Inode::strayBytes
    bool empty() const { return unsynced.empty() && !lossUntold && !strayBytes; }
  };

  void keep(InodeId inode, Past past);
  Past take(InodeId inode);  // empty: nothing is known
  // What unsynced changes on the chain were answered with that there was no room for; 0: there are
  // none.
  uint64_t dropped(ChainId chain) const;

 private:
  using Pasts = std::list<std::pair<InodeId, Past>>;
  static size_t weight(const Past& past) { return std::max<size_t>(1, past.unsynced.size()); }
  Past remove(Pasts::iterator at);
  void dropOldest();

  mutable std::mutex mutex_;
  Pasts pasts_;  // oldest first
  std::unordered_map<InodeId, Pasts::iterator> byInode_;
  size_t objects_ = 0;
  std::map<uint32_t, uint64_t> dropped_;  // by chain
};

}  // namespace trainfs::client
