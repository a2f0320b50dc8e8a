#include "mds/size_recovery.h"

#include <algorithm>

#include "mds/namespace.h"
#include "trainfs/logging.h"

namespace trainfs::mds {

SizeRecovery::SizeRecovery(Store& store, OwnCommands& commands, Glimpse& glimpse,
                           Truncations& truncations, kj::Timer& timer, const ServerOptions& options)
    : store_(store),
      commands_(commands),
      glimpse_(glimpse),
      truncations_(truncations),
      timer_(timer),
      retryDelay_(options.retryDelay) {}

kj::Promise<void> SizeRecovery::takeOver(SessionId session) {
  return takeOver(writtenBy(*store_.snapshot(), session));
}

kj::Promise<void> SizeRecovery::takeOver(std::vector<InodeId> files) {
  if (files.empty()) co_return;
  std::vector<Operation> marks;
  for (auto inode : files) marks.push_back(OpenWriteOp{inode});
  co_await commands_.runAll(std::move(marks));
  kick();  // only now: run() may have looked before the marks were there
}

void SizeRecovery::kick() {
  pending_ = true;
  work_.notify();
}

kj::Promise<void> SizeRecovery::run() {
  for (;;) {
    auto files = writtenBy(*store_.snapshot(), kMdsItself);
    pending_ = !files.empty();
    if (files.empty()) {
      co_await work_.wait();
      continue;
    }
    spdlog::info("asking the OSTs for the sizes of {} files", files.size());
    bool progress = false;
    for (size_t begin = 0; begin < files.size(); begin += kRecoveriesAtOnce) {
      size_t count = std::min(kRecoveriesAtOnce, files.size() - begin);
      auto attempts = kj::heapArrayBuilder<kj::Promise<bool>>(count);
      for (size_t i = 0; i < count; ++i) attempts.add(recover(files[begin + i]));
      for (bool done : co_await kj::joinPromises(attempts.finish())) progress |= done;
    }
    if (!progress) co_await timer_.afterDelay(retryDelay_);
  }
}

// False: an OST is away, or the file is being truncated; try again later.
kj::Promise<bool> SizeRecovery::recover(InodeId inode) {
  if (truncations_.has(inode)) co_return false;
  auto node = loadNode(*store_.snapshot(), inode);
  if (node) {
    FileTruth truth;
    try {
      truth = co_await glimpse_.ask(inode, node->layout, glimpse_.patience());
    } catch (const kj::Exception& e) {
      spdlog::warn("the size of inode {:#x} stays open: {}", inode.value,
                   e.getDescription().cStr());
      co_return false;
    }
    if (truth.error != 0)
      spdlog::error("inode {:#x}: part of it cannot be looked at: its size is what the rest says",
                    inode.value);
    ReportOp report{.inode = inode,
                    .sizeBytes = truth.sizeBytes,
                    .usedBytes = truth.usedBytes,
                    .settings = node->attributes.settings};
    if (truth.mtime > node->attributes.ctime) report.mtime = truth.mtime;
    report.exists = truth.exists;
    auto outcome = co_await commands_.run(std::move(report));
    if (outcome.error == 0) co_return true;
  }
  // Gone meanwhile: so goes the mark.
  co_await commands_.run(ReleaseOp{inode});
  co_return true;
}

}  // namespace trainfs::mds
