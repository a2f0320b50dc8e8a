// The threads that receive requests from /dev/fuse. They hand requests on and never wait for a
// server, so a few serve any number of callers; they live as long as the mount.
//
// libfuse's own loop receives every request into one buffer per thread, which the next request
// overwrites. Here a write keeps the buffer it came in until the OSTs have the data, and its thread
// goes on with another: no copy.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "fuse_client/buffer_pool.h"

struct fuse_session;

namespace trainfs::client {

class ReceiveLoop {
 public:
  // `ended` runs once, on one of the threads, when the kernel has let the mount go.
  ReceiveLoop(fuse_session* session, BufferPool& buffers, uint32_t threads,
              std::function<void()> ended);
  ~ReceiveLoop();  // ends the threads

  // Called by the handler of a write: keeps its data, and says where it is kept. That is where this
  // thread received it, or a copy if another loop did (libfuse's, beside io_uring).
  struct Kept {
    BufferPool::Buffer buffer;
    std::span<const std::byte> data;
  };
  static Kept keep(BufferPool& buffers, std::span<const std::byte> data);

 private:
  void run();

  fuse_session* session_;
  BufferPool& buffers_;
  std::function<void()> ended_;
  std::atomic<bool> stopping_{false}, told_{false};
  std::vector<std::thread> threads_;
  std::atomic<uint32_t> running_{0};
};

}  // namespace trainfs::client
