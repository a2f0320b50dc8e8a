// Order among the operations on one inode, without a thread that waits: shared ones run together,
// exclusive ones alone, in the order of asking. An operation holds its Pass until it is finished,
// and whoever lets the last one go runs the next in line, after what it is running in such a line.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace trainfs::client {

class OrderedAccess : public std::enable_shared_from_this<OrderedAccess> {
 public:
  using Pass = std::shared_ptr<void>;
  using Operation = std::function<void(Pass)>;

  static std::shared_ptr<OrderedAccess> create() { return std::make_shared<OrderedAccess>(); }

  // Runs `operation` now, on this thread, or later, on the thread that ends what stands in the way.
  // `owner`: may be withdrawn.
  void shared(Operation operation, const void* owner = nullptr) {
    enter(false, std::move(operation), owner);
  }
  void exclusive(Operation operation, const void* owner = nullptr) {
    enter(true, std::move(operation), owner);
  }
  // An owner's operation leaves the line, if it is still there: it is not run any more.
  void withdraw(const void* owner);

 private:
  struct Waiting {
    bool exclusive;
    const void* owner;  // or null
    Operation operation;
  };

  void enter(bool exclusive, Operation operation, const void* owner);
  void leave(bool exclusive);
  bool admit(bool exclusive);       // mutex_ held
  std::vector<Waiting> takeNext();  // mutex_ held
  void run(std::vector<Waiting> next);
  Pass makePass(bool exclusive);

  std::mutex mutex_;
  std::deque<Waiting> waiting_;
  uint32_t shared_ = 0;
  bool exclusive_ = false;
};

}  // namespace trainfs::client
