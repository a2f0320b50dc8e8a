#include "mds/choices.h"

#include <algorithm>
#include <ctime>

namespace trainfs::mds {

Choices::Choices(const View& view, const OstTable& osts)
    : osts_(osts), last_(lastCommandTime(view)), nextInode_(mds::nextInode(view).value) {
  // Files made one after another start at different OSTs over restarts, too.
  turn_ = nextInode_;
}

Time Choices::now() {
  timespec wall{};
  KJ_SYSCALL(clock_gettime(CLOCK_REALTIME, &wall));
  last_ = std::max(last_, Time{wall.tv_sec, static_cast<uint32_t>(wall.tv_nsec)});
  return last_;
}

InodeId Choices::newInode() {
  return InodeId{nextInode_++};
}

Result<Layout> Choices::place(const Layout& layout) {
  if (osts_.settling()) return striping::place(layout, {}, turn_);
  auto placed = striping::place(layout, osts_.space(), turn_++);
  if (!placed && placed.error() == Errno(ENOSPC)) return layout;
  return placed;
}

Result<std::vector<ChainId>> Choices::chains(const Component& component) {
  return striping::chooseChains(component, osts_.space(), turn_++);
}

}  // namespace trainfs::mds
