// Makes the kernel forget what it caches of this mount. A thread of its own, because a notification
// may wait for requests in flight, which no thread that answers requests may do.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_set>

#include "fuse_client/inodes.h"

struct fuse_session;

namespace trainfs::client {

class Invalidator {
 public:
  explicit Invalidator(Inodes& inodes);
  ~Invalidator();

  // From then on there is a kernel to talk to. Before, invalidation has nothing to do. nullptr: no
  // more.
  void setSession(fuse_session* session);
  // Whether the kernel can be told to look every name up again (Linux 6.16). Probed by setSession's
  // caller.
  bool hasEpochs() const { return hasEpochs_; }
  void probeEpochs();

  // Every name is looked up again when it is used next. At once, from any thread but a request's.
  void expireNames();
  // What the kernel keeps of the inode's ACLs, and what it is being told of them right now: an
  // answer that leaves afterwards serves who asked, and nobody else. At once, from any thread.
  void forgetAcls(InodeId inode);
  // Attributes of one inode; then runs `done`.
  void invalidateAttributes(InodeId inode, std::function<void()> done);
  // Pages of one inode; then runs `done`. Waits for reads of them that are under way.
  void invalidatePages(InodeId inode, std::function<void()> done);
  // Some time soon.
  void invalidatePages(InodeId inode);
  // Names, attributes and pages of all inodes; then runs `done`.
  void invalidateAll(std::function<void()> done);

 private:
  struct Job {
    InodeId inode;  // kNoInode: all
    bool pages;     // of one: these, not its attributes
    std::function<void()> done;
  };
  void add(Job job);
  void run();
  static void invalidatePages(fuse_session* session, const std::unordered_set<InodeId>& inodes);
  void invalidate(fuse_session* session, const std::deque<Job>& jobs);

  Inodes& inodes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::unordered_set<InodeId> stalePages_;
  fuse_session* session_ = nullptr;
  bool busy_ = false, stopping_ = false;
  std::atomic<bool> hasEpochs_{false};
  std::thread thread_;
};

}  // namespace trainfs::client
