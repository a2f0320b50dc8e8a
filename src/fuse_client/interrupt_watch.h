// Lets a process be killed while its request waits for a server that is away.
//
// Answering EINTR to whatever signal would break programs that expect none from a file system; so a
// request is given up only once its caller is being killed. The kernel tells of the first signal
// that hits a waiting caller, fatal or not, and of no other; and for a request of its rings it
// forgets to tell when the signal was there first. So whatever has been in flight for a while is
// looked at now and then, and everything at once when the kernel tells of a signal. One thread;
// interruptions come from any.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "fuse_client/fuse_request.h"
#include "fuse_client/in_flight.h"

namespace trainfs::client {

class InterruptWatch {
 public:
  explicit InterruptWatch(InFlight& inFlight);
  ~InterruptWatch();
  void interrupted();

 private:
  void run();

  InFlight& inFlight_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool interrupted_ = false, stopping_ = false;
  std::thread thread_;
};

// Whether a thread (as the kernel names it in a request) has SIGKILL pending: every fatal signal
// becomes one.
bool beingKilled(int thread);

}  // namespace trainfs::client
