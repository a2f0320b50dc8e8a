// Lets a process be killed while its request waits for a server that is away, and lets any signal
// end a wait for a lock.
//
// Answering EINTR to whatever signal would break programs that expect none from a file system; so a
// request is given up only once its caller is being killed. The kernel tells of the first signal
// that hits a waiting caller, fatal or not, and of no other; and for a request of its rings it
// forgets to tell when the signal was there first. So whatever has been in flight for a while is
// looked at now and then, and everything at once when the kernel tells of a signal. One thread;
// interruptions come from any.
//
// Waits for locks may be many and long: once such a caller has been seen asleep, the kernel will
// tell of its signal, and only then they are looked at again. They must not be ended without one,
// or the caller would see an error that is the kernel's own (ERESTARTSYS).
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
  void look(Request& request, bool told);

  InFlight& inFlight_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool interrupted_ = false, stopping_ = false;
  std::thread thread_;
};

// Of a thread, as the kernel names it in a request.
struct CallerState {
  char letter = 0;      // as in proc(5)
  bool killed = false;  // SIGKILL is pending: every fatal signal becomes one
};
CallerState callerState(int thread);

}  // namespace trainfs::client
