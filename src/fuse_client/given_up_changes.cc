#include "fuse_client/given_up_changes.h"

#include <algorithm>
#include <utility>

namespace trainfs::client {

void GivenUpChanges::add(const std::vector<InodeId>& touched) {
  for (auto inode : touched) ++touched_[inode];
}

void GivenUpChanges::settled(const std::vector<InodeId>& touched) {
  for (auto inode : touched)
    if (--touched_[inode] == 0) touched_.erase(inode);
  for (auto& fulfiller : std::exchange(waiting_, {})) fulfiller->fulfill();
}

bool GivenUpChanges::touchAny(const std::vector<InodeId>& inodes) const {
  return std::any_of(inodes.begin(), inodes.end(),
                     [&](InodeId inode) { return touched_.contains(inode); });
}

kj::Promise<void> GivenUpChanges::nextSettled() {
  std::erase_if(waiting_, [](auto& fulfiller) { return !fulfiller->isWaiting(); });
  auto paf = kj::newPromiseAndFulfiller<void>();
  waiting_.push_back(kj::mv(paf.fulfiller));
  return kj::mv(paf.promise);
}

}  // namespace trainfs::client
