#include "fuse_client/append_turns.h"

#include <utility>

namespace trainfs::client {

void AppendTurns::take(InodeId inode, Next next) {
  {
    std::lock_guard lock(mutex_);
    auto [file, isNew] = files_.try_emplace(inode);
    if (!isNew) return file->second.waiting.push_back(std::move(next));
  }
  begin(inode, std::move(next));
}

// With `answering` kept, tell() finds what was begun alone.
void AppendTurns::begin(InodeId inode, Next next) {
  TurnPtr turn;
  FileLock wanted;
  {
    Coherence::Answering answering(coherence_);
    std::lock_guard lock(mutex_);
    auto& file = files_[inode];
    file.lock = {.inode = inode,
                 .kind = LockKind::kAppend,
                 .owner = ++lastTurn_,
                 .range = {},
                 .mode = LockMode::kExclusive};
    file.lost = std::make_shared<std::atomic<bool>>(false);
    file.had = answering.mayCache();
    file.asked = !file.had;
    if (file.had) turn = makeTurn(inode, file);
    wanted = file.lock;
  }
  if (turn) return next(std::move(turn));
  mds_.lock(wanted, true, [this, inode, next = std::move(next)](Status status) {
    TurnPtr turn;
    {
      std::lock_guard lock(mutex_);
      auto& file = files_[inode];
      file.answered = true;
      file.had = status.ok();
      turn = makeTurn(inode, file);
    }
    next(status ? Result<TurnPtr>(std::move(turn)) : status.error());
  });
}

void AppendTurns::end(InodeId inode) {
  Next next;
  FileLock ended;
  bool known;
  {
    std::lock_guard lock(mutex_);
    auto& file = files_[inode];
    if (file.asked && !file.answered) {
      file.over = true;
      return;
    }
    ended = file.lock;
    known = file.answered || file.claimed;
    auto waiting = std::move(file.waiting);
    if (waiting.empty()) {
      files_.erase(inode);
    } else {
      next = std::move(waiting.front());
      waiting.pop_front();
      file = File{.waiting = std::move(waiting)};
    }
  }
  if (known) mds_.unlock(ended, [](Status) {});
  if (next) begin(inode, std::move(next));
}

// ---- when others come, or may have come ----

void AppendTurns::tell(std::function<void()> done) {
  std::shared_ptr<void> untilTold(nullptr, [done = std::move(done)](void*) { done(); });
  std::vector<FileLock> untold;
  {
    std::lock_guard lock(mutex_);
    for (auto& [inode, file] : files_) {
      if (!file.had || file.answered) continue;
      file.untilTold.push_back(untilTold);
      if (!std::exchange(file.asked, true)) untold.push_back(file.lock);
    }
  }
  for (auto& lock : untold) {
    mds_.lock(lock, true, [this, inode = lock.inode](Status status) {
      std::vector<std::shared_ptr<void>> told;
      bool over;
      {
        std::lock_guard lock(mutex_);
        auto& file = files_[inode];
        file.answered = true;
        if (!status) file.lost->store(true, std::memory_order_release);
        told = std::move(file.untilTold);
        over = file.over;
      }
      if (over) end(inode);
    });
  }
}

std::vector<FileLock> AppendTurns::claims() {
  std::lock_guard lock(mutex_);
  std::vector<FileLock> claims;
  for (auto& [inode, file] : files_) {
    if (!file.had || file.over || file.lost->load(std::memory_order_acquire)) continue;
    file.claimed = true;
    claims.push_back(file.lock);
  }
  return claims;
}

void AppendTurns::lose() {
  std::lock_guard lock(mutex_);
  for (auto& [inode, file] : files_)
    if (file.had) file.lost->store(true, std::memory_order_release);
}

AppendTurns::TurnPtr AppendTurns::makeTurn(InodeId inode, const File& file) {
  return std::make_shared<Turn>(*this, inode, file.lost);
}

}  // namespace trainfs::client
