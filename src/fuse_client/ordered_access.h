// Order among the operations on one inode, without a thread that waits: shared ones run together,
// exclusive ones alone, in the order of asking. An operation holds its Pass until it is finished,
// and whoever lets the last one go runs the next in line.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace trainfs::client {

class OrderedAccess : public std::enable_shared_from_this<OrderedAccess> {
 public:
  using Pass = std::shared_ptr<void>;
  using Operation = std::function<void(Pass)>;

  static std::shared_ptr<OrderedAccess> create() { return std::make_shared<OrderedAccess>(); }

  // Runs `operation` now, on this thread, or later, on the thread that ends what stands in the way.
  void shared(Operation operation) { enter(false, std::move(operation)); }
  void exclusive(Operation operation) { enter(true, std::move(operation)); }

 private:
  struct Waiting {
    bool exclusive;
    Operation operation;
  };

  void enter(bool exclusive, Operation operation);
  void leave(bool exclusive);
  bool admit(bool exclusive);  // mutex_ held
  Pass makePass(bool exclusive);

  std::mutex mutex_;
  std::deque<Waiting> waiting_;
  uint32_t shared_ = 0;
  bool exclusive_ = false;
};

}  // namespace trainfs::client
