// Changes of an inode that were answered and are lost: a server lost its memory before they were
// synced, or the MDS never learnt of them. Every handle that was open then is told so, once, at its
// next fsync or close; if none was told, the next one that is opened is. Under the inode's mutex.
#pragma once

#include <cstdint>
#include <memory>

namespace trainfs::client {

class Losses {
 public:
  using Mark = std::shared_ptr<uint64_t>;  // of a handle: what it has been told

  void add() {
    ++count_;
    told_ = false;
  }
  bool untold() const { return !told_; }
  Mark newMark() const { return std::make_shared<uint64_t>(told_ ? count_ : count_ - 1); }
  // True: there are some that the handle has not been told of; now it has.
  bool take(const Mark& mark) {
    if (*mark == count_) return false;
    *mark = count_;
    return told_ = true;
  }

 private:
  uint64_t count_ = 0;
  bool told_ = true;  // the last one, to any handle
};

}  // namespace trainfs::client
