// Asks the OSTs what a file that somebody is writing looks like by now. (The word is Lustre's.)
// Owned by the MDS event loop.
#pragma once

#include <kj/timer.h>

#include <vector>

#include "mds/cluster_map.h"
#include "mds/namespace.h"

namespace trainfs::mds {

// Objects in one call to an OST.
inline constexpr size_t kStatObjectsMax = 1024;

// What the objects of a file say.
struct FileTruth {
  int error = 0;  // errno: an object cannot be looked at; the rest is what the others say
  uint64_t sizeBytes = 0;
  uint64_t usedBytes = 0;
  Time mtime;  // of the object written last; {0,0} without objects
  std::vector<std::pair<uint8_t, uint32_t>> exists;  // (component, stripe)
};

// What a client is to see: never smaller than the record.
void mergeTruth(Node& node, const FileTruth& truth);

class Glimpse {
 public:
  Glimpse(OstTable& osts, kj::Timer& timer, const ServerOptions& options)
      : osts_(osts), timer_(timer), options_(options) {}

  // Waits for OSTs that are away until the deadline, then throws OVERLOADED: no answer is better
  // than a wrong one, and the asker may ask again.
  kj::Promise<FileTruth> ask(InodeId inode, Layout layout, kj::TimePoint deadline);
  kj::TimePoint patience() const { return timer_.now() + options_.patience; }

 private:
  struct Found {
    ObjectId object;
    int error = 0;
    bool exists = false;
    uint64_t sizeBytes = 0, usedBytes = 0;
    Time mtime;
  };
  kj::Promise<std::vector<Found>> askOst(uint32_t index, std::vector<ObjectId> objects,
                                         kj::TimePoint deadline);
  kj::Promise<std::vector<Found>> stat(rpc::OssControl::Client control,
                                       const std::vector<ObjectId>& objects);

  OstTable& osts_;
  kj::Timer& timer_;
  const ServerOptions& options_;
};

}  // namespace trainfs::mds
