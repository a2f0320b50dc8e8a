#include "trainfs/ring.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <system_error>

namespace trainfs {

namespace {

constexpr unsigned kCompletionsPerEntry = 8;
constexpr int kSubmitAttemptsMax = 1000;

[[noreturn]] void fail(int error, const char* what) {
  throw std::system_error(error, std::generic_category(), what);
}

// Refusals that go away once completions are reaped, memory is free again or a signal is handled.
bool passing(int error) {
  return error == EINTR || error == EAGAIN || error == EBUSY || error == ETIME;
}

}  // namespace

Ring::Ring(uint32_t entries) {
  // Best first; a kernel answers EINVAL to flags that it does not know (6.1, 5.19, older).
  static constexpr unsigned kFlags[] = {
      IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
      IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN,
      0,
  };
  int result = -EINVAL;
  for (unsigned flags : kFlags) {
    io_uring_params params{};
    params.flags = flags | IORING_SETUP_CQSIZE;
    params.cq_entries = entries * kCompletionsPerEntry;
    result = io_uring_queue_init_params(entries, &ring_, &params);
    if (result != -EINVAL) break;
  }
  if (result < 0) fail(-result, "io_uring_setup");
}

Ring::~Ring() {
  io_uring_queue_exit(&ring_);
}

io_uring_sqe* Ring::take() {
  for (int attempt = 0; attempt < kSubmitAttemptsMax; ++attempt) {
    if (auto* sqe = io_uring_get_sqe(&ring_)) {
      attach(sqe, nullptr);  // the slot still has the data of its last use
      ++inFlight_;
      return sqe;
    }
    int result = io_uring_submit(&ring_);
    if (result < 0 && !passing(-result)) fail(-result, "io_uring_enter");
  }
  fail(EAGAIN, "io_uring_enter: submission queue stays full");
}

void Ring::enter(std::chrono::milliseconds timeout) {
  using namespace std::chrono;
  int result;
  if (timeout.count() == 0) {
    result = io_uring_submit_and_get_events(&ring_);
  } else {
    auto whole = duration_cast<seconds>(timeout);
    __kernel_timespec limit{.tv_sec = whole.count(),
                            .tv_nsec = nanoseconds(timeout - whole).count()};
    io_uring_cqe* first = nullptr;
    result = io_uring_submit_and_wait_timeout(&ring_, &first, 1,
                                              timeout.count() < 0 ? nullptr : &limit, nullptr);
  }
  if (result < 0 && !passing(-result)) fail(-result, "io_uring_enter");
}

bool Ring::next(Outcome& outcome) {
  io_uring_cqe* cqe = nullptr;
  if (io_uring_cq_ready(&ring_) == 0 || io_uring_peek_cqe(&ring_, &cqe) != 0) return false;
  outcome = {static_cast<Completion*>(io_uring_cqe_get_data(cqe)), cqe->res};
  if (!(cqe->flags & IORING_CQE_F_MORE)) --inFlight_;
  io_uring_cqe_seen(&ring_, cqe);
  return true;
}

unsigned Ring::run(std::chrono::milliseconds timeout) {
  enter(setAside_.empty() ? timeout : std::chrono::milliseconds(0));
  unsigned ran = 0;
  for (; !setAside_.empty(); ++ran) {
    Outcome outcome = setAside_.front();
    setAside_.pop_front();
    if (outcome.completion != nullptr) outcome.completion->completed(outcome.result);
  }
  // Only what is there now: completions that queue and complete more must not keep the caller here.
  Outcome outcome;
  for (unsigned ready = io_uring_cq_ready(&ring_); ready > 0 && next(outcome); --ready, ++ran)
    if (outcome.completion != nullptr) outcome.completion->completed(outcome.result);
  return ran;
}

int Ring::await(const Completion* completion) {
  for (auto aside = setAside_.begin(); aside != setAside_.end(); ++aside) {
    if (aside->completion != completion) continue;
    int result = aside->result;
    setAside_.erase(aside);
    return result;
  }
  for (Outcome outcome;;) {
    while (next(outcome)) {
      if (outcome.completion == completion) return outcome.result;
      setAside_.push_back(outcome);
    }
    enter(std::chrono::milliseconds(-1));
  }
}

Waker::Waker(Ring& ring, std::function<void()> onWake) : ring_(ring), onWake_(std::move(onWake)) {
  eventFd_ = eventfd(0, EFD_CLOEXEC);
  if (eventFd_ < 0) fail(errno, "eventfd");
  arm();
}

Waker::~Waker() {
  wake();  // ends the read that is always in flight
  ring_.await(this);
  close(eventFd_);
}

void Waker::wake() {
  uint64_t one = 1;
  while (write(eventFd_, &one, sizeof one) < 0)
    if (errno != EINTR) fail(errno, "eventfd");
}

void Waker::arm() {
  auto* sqe = ring_.take();
  io_uring_prep_read(sqe, eventFd_, &value_, sizeof value_, 0);
  Ring::attach(sqe, this);
}

void Waker::completed(int result) {
  if (result < 0 && !passing(-result)) fail(-result, "eventfd");
  arm();
  if (result > 0) onWake_();
}

}  // namespace trainfs
