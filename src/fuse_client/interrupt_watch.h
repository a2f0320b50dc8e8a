// Lets a process be killed while its request waits for a server that is away.
//
// The kernel tells of the first signal that hits a waiting caller, fatal or not, and of no other.
// Answering EINTR to whatever signal would break programs that expect none from a file system; so a
// request that was interrupted is looked at now and then, and given up once its caller is being
// killed. One thread; entries come from any.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "fuse_client/fuse_request.h"

namespace trainfs::client {

class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  void add(std::weak_ptr<Request> request);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::weak_ptr<Request>> watched_;
  bool stopping_ = false;
  std::thread thread_;
};

// Whether a thread (as the kernel names it in a request) has SIGKILL pending: every fatal signal
// becomes one.
bool beingKilled(int thread);

}  // namespace trainfs::client
