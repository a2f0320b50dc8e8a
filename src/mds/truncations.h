// Truncations: the objects of a file are cut by their OSTs, and then the file has its new size, as
// one step for everybody who asks, and once for the client who asks again. What is to be done is in
// the store before it begins, so it is done whatever becomes of the client and of this server, as
// soon as the OSTs that have the objects are there. Owned by the MDS event loop.
#pragma once

#include <kj/timer.h>

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "mds/choices.h"
#include "mds/cluster_map.h"
#include "mds/log.h"
#include "mds/store.h"

namespace trainfs::mds {

// Objects in one call to an OST.
inline constexpr size_t kCutObjectsMax = 1024;

class Truncations {
 public:
  // Goes on with what an earlier run of this server has left. `tasks` is outlived by all parts.
  Truncations(Store& store, Log& log, Choices& choices, OstTable& osts, kj::Timer& timer,
              const ServerOptions& options, kj::TaskSet& tasks);

  // Of a SetAttrOp with kCutObjects, while the inode has none. Resolves with its outcome, or throws
  // OVERLOADED: it takes longer than a caller is asked to wait, and the same command again waits
  // on.
  kj::Promise<Outcome> run(Command command);

  // Nothing that is known of the inode's size is true until it is over.
  bool has(InodeId inode) const { return underWay_.contains(inode); }
  // Counts them.
  uint64_t begun() const { return begun_; }
  // Until when a caller is asked to wait who comes now.
  kj::TimePoint deadline() const { return timer_.now() + options_.patience; }
  // Resolves when one is over, of this inode or another, or throws OVERLOADED after the deadline.
  // Who has waited looks anew: others who waited may have begun the next one.
  kj::Promise<void> changed(kj::TimePoint deadline);

  // A file could not be cut: its size is to be asked of the OSTs.
  void onSizeToBeAsked(std::function<void()> call) { sizeToBeAsked_ = std::move(call); }

 private:
  struct UnderWay {
    bool over = false;
    Outcome outcome;
  };
  struct Cut {
    ObjectId object;
    uint64_t sizeBytes = 0;
  };
  using Cuts = std::vector<Cut>;

  std::shared_ptr<UnderWay> enter(InodeId inode);
  void leave(InodeId inode, UnderWay& entry, Outcome outcome);
  kj::Promise<void> begin(Command command, std::shared_ptr<UnderWay> entry);
  kj::Promise<void> carryOn(Command command, std::shared_ptr<UnderWay> entry);
  kj::Promise<Outcome> cutAndApply(Command command);
  kj::Promise<int> cutObjects(const SetAttrOp& set);
  kj::Promise<int> cutOn(uint32_t index, Cuts cuts);
  static kj::Promise<int> cut(rpc::OssControl::Client control, const Cuts& cuts);
  kj::Promise<int> registrationOver(uint32_t index, uint64_t registration);
  kj::Promise<Outcome> append(Command command);

  Store& store_;
  Log& log_;
  Choices& choices_;
  OstTable& osts_;
  kj::Timer& timer_;
  const ServerOptions& options_;
  kj::TaskSet& tasks_;
  std::function<void()> sizeToBeAsked_ = [] {};
  std::unordered_map<InodeId, std::shared_ptr<UnderWay>> underWay_;
  uint64_t begun_ = 0;
  Condition changed_;
};

}  // namespace trainfs::mds
