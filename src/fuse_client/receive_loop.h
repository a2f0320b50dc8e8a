// The threads that receive requests from /dev/fuse: all of them, or, beside io_uring, those that do
// not come through the kernel's rings (forgotten inodes, interruptions, the first ones of a mount).
// They hand requests on and never wait for a server, so a few serve any number of callers; they
// live as long as the mount.
//
// libfuse's own loop receives every request into one buffer per thread, which the next request
// overwrites. Here a write keeps the buffer it came in until the OSTs have the data, and its thread
// goes on with another: no copy. How many may do so, places.h says: there is always one to receive
// the next request into.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "fuse_client/buffer_pool.h"

struct fuse_buf;
struct fuse_session;

namespace trainfs::client {

class ReceiveLoop {
 public:
  // `ended` runs once, on one of the threads, when the kernel has let the mount go.
  // `interrupted`: a caller was hit by a signal while it waits.
  ReceiveLoop(fuse_session* session, BufferPool& buffers, uint32_t threads,
              std::function<void()> interrupted, std::function<void()> ended);
  ~ReceiveLoop();  // ends the threads

  // Called by the handler of a write that one of these threads received: takes over the buffer that
  // it came in.
  static BufferPool::Buffer keep();

 private:
  void run();
  void process(fuse_buf& received);

  fuse_session* session_;
  BufferPool& buffers_;
  std::function<void()> interrupted_, ended_;
  std::atomic<bool> stopping_{false}, told_{false};
  std::vector<std::thread> threads_;
  std::atomic<uint32_t> running_{0};
};

}  // namespace trainfs::client
