// The event loop of one data worker: a Ring, coroutines that are ready to go on, calls posted by
// other threads, and a tick. All but post() belongs to the thread that made it.
#pragma once

#include <chrono>
#include <coroutine>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "oss/task.h"
#include "trainfs/ring.h"

namespace trainfs::oss {

// Sees the operations of a reactor, for tests that lose or disturb them. An operation's user_data
// is its own from the one call to the other.
class OperationObserver {
 public:
  virtual void submitted(const io_uring_sqe& operation) = 0;
  // Before anyone is told; may change the result.
  virtual void completed(const io_uring_sqe& operation, int& result) = 0;

 protected:
  ~OperationObserver() = default;
};

// One operation on a Ring, to be awaited where it is made: gives the CQE's result.
class [[nodiscard]] RingOp final : public Completion {
 public:
  // prepare(io_uring_sqe*) fills the operation in.
  template <typename Prepare>
  RingOp(Ring& ring, OperationObserver* observer, Prepare&& prepare) : observer_(observer) {
    io_uring_sqe* sqe = ring.take();
    prepare(sqe);
    Ring::attach(sqe, this);
    if (observer_) showSubmitted(*sqe);
  }
  RingOp(const RingOp&) = delete;
  RingOp& operator=(const RingOp&) = delete;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> awaiting) noexcept { awaiting_ = awaiting; }
  int await_resume() const noexcept { return result_; }

 private:
  void completed(int result) override {
    result_ = result;
    if (observer_) observer_->completed(*seen_, result_);
    awaiting_.resume();
  }
  void showSubmitted(const io_uring_sqe& operation) {
    seen_ = std::make_unique<io_uring_sqe>(operation);
    observer_->submitted(operation);
  }

  OperationObserver* const observer_;
  std::unique_ptr<io_uring_sqe> seen_;
  std::coroutine_handle<> awaiting_;
  int result_ = 0;
};

class Reactor {
 public:
  explicit Reactor(uint32_t ringEntries = kRingEntries);
  ~Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  Ring& ring() { return ring_; }
  template <typename Prepare>
  RingOp operate(Prepare&& prepare) {
    return RingOp(ring_, observer_, std::forward<Prepare>(prepare));
  }
  // Null: nobody looks on.
  void observe(OperationObserver* observer) { observer_ = observer; }

  // Any thread: runs the call on this reactor's thread. What posts is bounded by its own requests
  // in flight. Nobody may post once the reactor goes.
  void post(std::function<void()> call);

  // Goes on with a coroutine from the loop, not from the caller's stack.
  void resumeSoon(std::coroutine_handle<> coroutine) { ready_.push_back(coroutine); }

  // One turn: what is ready, then completions, waiting for at most `timeout` if nothing is ready.
  void turn(std::chrono::milliseconds timeout);

  // Turns until `done` says so.
  void runUntil(const std::function<bool()>& done);

 private:
  static constexpr uint32_t kRingEntries = 1024;

  void runReady();
  void runPosted();

  Ring ring_;
  OperationObserver* observer_ = nullptr;
  std::vector<std::coroutine_handle<>> ready_, resuming_;
  std::mutex mutex_;  // guards posted_
  std::vector<std::function<void()>> posted_;
  Waker waker_;  // last: its callback uses what is above
};

// Something that coroutines of one reactor wait for. set() lets all go on that wait now; after it,
// nobody waits until clear().
class Event {
 public:
  explicit Event(Reactor& reactor) : reactor_(reactor) {}
  Event(const Event&) = delete;

  bool isSet() const { return set_; }
  void clear() { set_ = false; }
  void set() {
    set_ = true;
    pulse();
  }
  // Lets those go on that wait now, without becoming set.
  void pulse() {
    for (auto waiting : waiting_) reactor_.resumeSoon(waiting);
    waiting_.clear();
  }
  auto operator co_await() {
    struct Awaiter {
      Event& event;
      bool await_ready() const { return event.set_; }
      void await_suspend(std::coroutine_handle<> coroutine) { event.waiting_.push_back(coroutine); }
      void await_resume() const {}
    };
    return Awaiter{*this};
  }

 private:
  Reactor& reactor_;
  bool set_ = false;
  std::vector<std::coroutine_handle<>> waiting_;
};

// A fixed number of permits, handed out first come, first served.
class Permits {
 public:
  Permits(Reactor& reactor, uint32_t count) : reactor_(reactor), free_(count) {}
  Permits(const Permits&) = delete;

  auto acquire() {
    struct Awaiter {
      Permits& permits;
      bool await_ready() {
        if (permits.free_ == 0) return false;
        --permits.free_;
        return true;
      }
      void await_suspend(std::coroutine_handle<> coroutine) {
        permits.waiting_.push_back(coroutine);
      }
      void await_resume() const {}
    };
    return Awaiter{*this};
  }
  // A waiter gets the permit itself, so nobody can come in between.
  void release() {
    if (waiting_.empty()) {
      ++free_;
      return;
    }
    reactor_.resumeSoon(waiting_.front());
    waiting_.pop_front();
  }

 private:
  Reactor& reactor_;
  uint32_t free_;
  std::deque<std::coroutine_handle<>> waiting_;
};

// Waits for a call that answers on another thread: start(done) is run, `done(value)` may be called
// on any thread, exactly once, and the coroutine goes on here with the value.
template <typename T>
class [[nodiscard]] ForeignCall {
 public:
  using Done = std::function<void(T)>;
  ForeignCall(Reactor& reactor, std::function<void(Done)> start)
      : reactor_(reactor), start_(std::move(start)) {}
  ForeignCall(const ForeignCall&) = delete;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> awaiting) {
    // start_ is moved out: the coroutine, and this with it, may be gone before it returns.
    auto start = std::move(start_);
    start([this, awaiting, &reactor = reactor_](T value) {
      reactor.post([this, awaiting, value = std::move(value)]() mutable {
        value_.emplace(std::move(value));
        awaiting.resume();
      });
    });
  }
  T await_resume() { return std::move(*value_); }

 private:
  Reactor& reactor_;
  std::function<void(Done)> start_;
  std::optional<T> value_;
};

}  // namespace trainfs::oss
