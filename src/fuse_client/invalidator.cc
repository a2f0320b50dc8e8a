#include "fuse_client/invalidator.h"

#define FUSE_USE_VERSION 318
#include <fuse_lowlevel.h>

#include <utility>

namespace trainfs::client {

Invalidator::Invalidator(Inodes& inodes) : inodes_(inodes), thread_([this] { run(); }) {}

Invalidator::~Invalidator() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Invalidator::setSession(fuse_session* session) {
  std::unique_lock lock(mutex_);
  session_ = session;
  changed_.wait(lock, [&] { return !busy_; });
}

void Invalidator::probeEpochs() {
  hasEpochs_ = fuse_lowlevel_notify_increment_epoch(session_) == 0;
}

void Invalidator::expireNames() {
  std::lock_guard lock(mutex_);
  if (session_ != nullptr && hasEpochs_) fuse_lowlevel_notify_increment_epoch(session_);
}

// A notification of attributes alone never waits.
void Invalidator::forgetAcls(InodeId inode) {
  std::lock_guard lock(mutex_);
  if (session_ != nullptr) fuse_lowlevel_notify_inval_inode(session_, inodes_.nodeOf(inode), -1, 0);
}

void Invalidator::invalidateAll(std::function<void()> done) {
  add({.inode = kNoInode, .pages = true, .done = std::move(done)});
}

void Invalidator::invalidateAttributes(InodeId inode, std::function<void()> done) {
  add({.inode = inode, .pages = false, .done = std::move(done)});
}

void Invalidator::invalidatePages(InodeId inode, std::function<void()> done) {
  add({.inode = inode, .pages = true, .done = std::move(done)});
}

void Invalidator::add(Job job) {
  std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  changed_.notify_all();
}

void Invalidator::invalidatePages(InodeId inode) {
  std::lock_guard lock(mutex_);
  stalePages_.insert(inode);
  changed_.notify_all();
}

void Invalidator::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !jobs_.empty() || !stalePages_.empty(); });
    if (stopping_ && jobs_.empty()) return;
    // One invalidation serves all that asked before it began.
    auto jobs = std::exchange(jobs_, {});
    auto stalePages = std::exchange(stalePages_, {});
    auto* session = session_;
    busy_ = true;
    lock.unlock();
    if (session != nullptr) invalidate(session, jobs);
    for (auto& job : jobs) job.done();
    if (session != nullptr) invalidatePages(session, stalePages);
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void Invalidator::invalidatePages(fuse_session* session,
                                  const std::unordered_set<InodeId>& inodes) {
  for (auto inode : inodes) fuse_lowlevel_notify_inval_inode(session, inode.value, 0, 0);
}

void Invalidator::invalidate(fuse_session* session, const std::deque<Job>& jobs) {
  bool all = false;
  for (auto& job : jobs) {
    all |= job.inode == kNoInode;
    if (job.inode != kNoInode)
      fuse_lowlevel_notify_inval_inode(session, inodes_.nodeOf(job.inode), job.pages ? 0 : -1, 0);
  }
  if (!all) return;
  if (hasEpochs_) fuse_lowlevel_notify_increment_epoch(session);
  auto inodes = inodes_.all();
  // Attributes first: that never waits. Then pages, which waits for reads in flight of the inode;
  // those are answered by OSSes and need nothing of what is being recalled. An inode that the
  // kernel does not know is no error.
  for (auto& inode : inodes)
    fuse_lowlevel_notify_inval_inode(session, inodes_.nodeOf(inode->id), -1, 0);
  for (auto& inode : inodes)
    fuse_lowlevel_notify_inval_inode(session, inodes_.nodeOf(inode->id), 0, 0);
}

}  // namespace trainfs::client
