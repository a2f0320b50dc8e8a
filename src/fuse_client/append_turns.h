// Whose turn it is to append to a file, among all clients (open(2): with O_APPEND no other write
// comes between finding the end of the file and writing there). The MDS has a lock per file for
// that (LockKind::kAppend). While this client is alone it takes its turns without asking, and tells
// the MDS of those that are under way before any other may come. Any thread.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "fuse_client/coherence.h"
#include "fuse_client/mds_client.h"

namespace trainfs::client {

class AppendTurns {
 public:
  // While it is kept nobody else appends to the file; but once it is lost, others may. Must not
  // outlive the AppendTurns.
  class Turn;
  using TurnPtr = std::shared_ptr<Turn>;
  using Next = std::function<void(Result<TurnPtr>)>;

  AppendTurns(MdsClient& mds, Coherence& coherence) : mds_(mds), coherence_(coherence) {}

  // One of this client's turns per file at a time, in the order of asking. `next` runs at once, or
  // on the thread on which the turn before ends, or on the MDS thread. Errors: ENOLCK, EIO.
  void take(InodeId inode, Next next);

  // When caching has been forbidden: runs `done` once the MDS knows of every turn under way.
  void tell(std::function<void()> done);
  // Of turns under way: for a server that has lost them.
  std::vector<FileLock> claims();
  // The session is over: others may have turns now.
  void lose();

 private:
  // A file with a turn, and those that come after it.
  struct File {
    std::deque<Next> waiting;
    FileLock lock;                            // the turn's, as the MDS is told of it
    std::shared_ptr<std::atomic<bool>> lost;  // of the turn
    bool had = false;                         // it is this client's turn
    bool asked = false;                       // the MDS was sent the lock...
    bool answered = false;                    // ...and has answered
    bool claimed = false;
    bool over = false;
    std::vector<std::shared_ptr<void>> untilTold;  // go when the MDS has answered
  };

  void begin(InodeId inode, Next next);
  void end(InodeId inode);
  TurnPtr makeTurn(InodeId inode, const File& file);

  MdsClient& mds_;
  Coherence& coherence_;
  std::mutex mutex_;
  std::map<InodeId, File> files_;
  uint64_t lastTurn_ = 0;
};

class AppendTurns::Turn {
 public:
  Turn(AppendTurns& turns, InodeId inode, std::shared_ptr<std::atomic<bool>> lost)
      : turns_(turns), inode_(inode), lost_(std::move(lost)) {}
  ~Turn() { turns_.end(inode_); }
  Turn(const Turn&) = delete;

  // Set before the next session begins.
  std::shared_ptr<const std::atomic<bool>> lost() const { return lost_; }

 private:
  AppendTurns& turns_;
  const InodeId inode_;
  const std::shared_ptr<std::atomic<bool>> lost_;
};

}  // namespace trainfs::client
