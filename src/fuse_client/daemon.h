// Going into the background: the caller's process ends when the mount serves, or with the reason
// why it does not.
#pragma once

#include <chrono>
#include <string>

namespace trainfs::client {

class Daemon {
 public:
  // Forks, unless `foreground`; before there are any threads. The parent does not return: it waits
  // for ready() or failed() of the child, at most `patience`, and ends with status 0 or 1.
  Daemon(bool foreground, std::chrono::seconds patience);

  // The mount serves. In the background, stderr becomes `logFile`, or syslog takes over if that is
  // empty.
  void ready(const std::string& logFile);
  // Prints the reason and ends the process.
  [[noreturn]] void failed(const std::string& reason);

 private:
  [[noreturn]] void waitForChild(int child, int pipe, std::chrono::seconds patience);

  bool foreground_;
  int readyPipe_ = -1;
};

}  // namespace trainfs::client
