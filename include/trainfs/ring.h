// One io_uring, owned by one thread: the only header with <liburing.h>.
// Every operation carries a Completion*; run() calls completed(result) with the CQE's res (>= 0, or
// -errno). SINGLE_ISSUER | DEFER_TASKRUN where the kernel has it; create the Ring on the thread
// that uses it. Before a Ring goes, whatever is in flight must have completed: the kernel still
// writes to its buffers.
#pragma once

#include <liburing.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>

namespace trainfs {

class Completion {
 public:
  // May queue further operations, and may destroy this object.
  virtual void completed(int result) = 0;

 protected:
  ~Completion() = default;
};

class Ring {
 public:
  // entries: submission queue depth; the completion queue has 8 times that. Throws
  // std::system_error.
  explicit Ring(uint32_t entries);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // A prepared-to-fill SQE; submits what is queued when the queue is full. Set its data with
  // `attach`; without, its result is dropped. Fill it before the next call of take() or run().
  io_uring_sqe* take();
  static void attach(io_uring_sqe* sqe, Completion* completion) {
    io_uring_sqe_set_data(sqe, completion);
  }

  // Submits what is queued and waits for at least one completion, or until the timeout (< 0: for
  // ever) or a signal; then runs every completion that is there. Returns how many ran.
  unsigned run(std::chrono::milliseconds timeout);

  // Submits what is queued and waits until the one operation of `completion` is over, without
  // running anything: its own result is returned, those of others wait for the next run(). For
  // destructors.
  int await(const Completion* completion);

  // Operations taken and not completed.
  unsigned inFlight() const { return inFlight_; }
  io_uring* raw() { return &ring_; }

 private:
  struct Outcome {
    Completion* completion;
    int result;
  };
  void enter(std::chrono::milliseconds timeout);
  bool next(Outcome& outcome);

  io_uring ring_{};
  unsigned inFlight_ = 0;
  std::deque<Outcome> setAside_;  // by await(); at most what was in flight then
};

// Wakes a Ring::run from another thread: `onWake` runs on the ring's thread, once after any number
// of wake(). Made and destroyed on the ring's thread, before the ring goes and not from within
// `onWake`; nobody may call wake() any more then.
class Waker final : private Completion {
 public:
  Waker(Ring& ring, std::function<void()> onWake);
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;
  void wake();  // any thread

 private:
  void arm();
  void completed(int result) override;
  Ring& ring_;
  std::function<void()> onWake_;
  int eventFd_ = -1;
  uint64_t value_ = 0;  // where the kernel puts the event's count
};

}  // namespace trainfs
