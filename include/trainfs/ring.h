// One io_uring, owned by one thread: the only header with <liburing.h>.
// Every operation carries a Completion*; run() calls completed(result) with the CQE's res (>= 0, or -errno).
// SINGLE_ISSUER | DEFER_TASKRUN where the kernel has it; create the Ring on the thread that uses it.
#pragma once

#include <liburing.h>

#include <chrono>
#include <cstdint>
#include <functional>

namespace trainfs {

class Completion {
 public:
  virtual void completed(int result) = 0;

 protected:
  ~Completion() = default;
};

class Ring {
 public:
  // entries: submission queue depth; the completion queue has 8 times that. Throws std::system_error.
  explicit Ring(uint32_t entries);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // A prepared-to-fill SQE; submits what is queued when the queue is full. Set its data with `attach`.
  io_uring_sqe* take();
  static void attach(io_uring_sqe* sqe, Completion* completion) { io_uring_sqe_set_data(sqe, completion); }

  // Submits what is queued and waits for at least one completion, or until the timeout (< 0: for ever); then runs
  // every completion that is there. Returns how many ran.
  unsigned run(std::chrono::milliseconds timeout);

  // Operations submitted and not completed.
  unsigned inFlight() const { return inFlight_; }
  io_uring* raw() { return &ring_; }

 private:
  io_uring ring_{};
  unsigned inFlight_ = 0;
};

// Wakes a Ring::run from another thread. poll() runs `onWake` on the ring's thread once after any number of wake().
class Waker final : private Completion {
 public:
  Waker(Ring& ring, std::function<void()> onWake);
  ~Waker();
  void wake();  // any thread

 private:
  void arm();
  void completed(int result) override;
  Ring& ring_;
  std::function<void()> onWake_;
  int eventFd_ = -1;
  uint64_t value_ = 0;
};

}  // namespace trainfs
