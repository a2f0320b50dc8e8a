#include "fuse_client/forgotten.h"

#include <utility>

#include "trainfs/logging.h"

namespace trainfs::client {

void Forgotten::keep(InodeId inode, Past past) {
  if (past.empty()) return;
  std::lock_guard lock(mutex_);
  if (auto before = byInode_.find(inode); before != byInode_.end()) remove(before->second);
  objects_ += weight(past);
  byInode_[inode] = pasts_.emplace(pasts_.end(), inode, std::move(past));
  while (objects_ > kObjectsMax) dropOldest();
}

Forgotten::Past Forgotten::take(InodeId inode) {
  std::lock_guard lock(mutex_);
  auto found = byInode_.find(inode);
  return found == byInode_.end() ? Past{} : remove(found->second);
}

uint64_t Forgotten::dropped(ChainId chain) const {
  std::lock_guard lock(mutex_);
  auto found = dropped_.find(chain.value);
  return found == dropped_.end() ? 0 : found->second;
}

Forgotten::Past Forgotten::remove(Pasts::iterator at) {
  Past past = std::move(at->second);
  objects_ -= weight(past);
  byInode_.erase(at->first);
  pasts_.erase(at);
  return past;
}

void Forgotten::dropOldest() {
  auto inode = pasts_.front().first;
  auto past = remove(pasts_.begin());
  if (past.lossUntold)
    spdlog::error("file {:x}: changes are lost, and nobody opened it to be told", inode.value);
  for (auto& [object, change] : past.unsynced) {
    auto [at, added] = dropped_.try_emplace(change.chain.value, change.verifier);
    if (!added && at->second != change.verifier) at->second = kVerifiersDiffer;
  }
}

}  // namespace trainfs::client
