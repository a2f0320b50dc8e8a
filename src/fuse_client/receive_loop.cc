#include "fuse_client/receive_loop.h"

#define FUSE_USE_VERSION 318
#include <fuse_lowlevel.h>
#include <kj/debug.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstring>
#include <utility>

namespace trainfs::client {

namespace {

// The buffer of the request that this thread is handling.
thread_local BufferPool::Buffer current;

constexpr int kWakeSignal = SIGUSR1;  // breaks a read of /dev/fuse; its handler does nothing

}  // namespace

BufferPool::Buffer ReceiveLoop::keep() {
  KJ_REQUIRE(current != nullptr, "a write that was not received here, or is kept already");
  return std::move(current);
}

ReceiveLoop::ReceiveLoop(fuse_session* session, BufferPool& buffers, uint32_t threads,
                         std::function<void()> interrupted, std::function<void()> ended)
    : session_(session),
      buffers_(buffers),
      interrupted_(std::move(interrupted)),
      ended_(std::move(ended)) {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  sigaction(kWakeSignal, &action, nullptr);
  running_ = threads;
  for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

ReceiveLoop::~ReceiveLoop() {
  stopping_ = true;
  fuse_session_exit(session_);
  while (running_ != 0) {  // a signal may come just before the read that it is to break
    for (auto& thread : threads_) pthread_kill(thread.native_handle(), kWakeSignal);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (auto& thread : threads_) thread.join();
}

void ReceiveLoop::run() {
  pthread_setname_np(pthread_self(), "fuse");
  fuse_buf buffer{};
  while (!stopping_ && !fuse_session_exited(session_)) {
    if (!current) current = buffers_.take();
    buffer = {};
    buffer.mem = current.get();
    buffer.mem_size = buffers_.bufferBytes();
    int received = fuse_session_receive_buf(session_, &buffer);
    if (received == -EINTR || received == -EAGAIN) continue;
    if (received <= 0) {
      if (received < 0) spdlog::error("/dev/fuse: {}", strerror(-received));
      break;
    }
    process(buffer);
  }
  current.reset();
  fuse_session_exit(session_);
  --running_;
  if (!told_.exchange(true)) ended_();
}

// libfuse does not find the request of the ring that an interruption is about, and would keep the
// interruption for ever. None needs an answer.
void ReceiveLoop::process(fuse_buf& received) {
  if (static_cast<const fuse_in_header*>(received.mem)->opcode == FUSE_INTERRUPT)
    interrupted_();
  else
    fuse_session_process_buf(session_, &received);
}

}  // namespace trainfs::client
