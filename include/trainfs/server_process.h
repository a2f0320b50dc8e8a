// What trainfs-mds and trainfs-oss have in common as processes: signals, logs, limits, and what a
// service manager wants to know. Made in main, after the options and before any thread and the
// event loop; lives there.
#pragma once

#include <kj/async-unix.h>
#include <kj/exception.h>

#include <string>

#include "trainfs/config.h"

namespace trainfs {

class ServerProcess {
 public:
  // Takes over SIGTERM, SIGINT and SIGHUP for the event loop, and kj's log; raises the limit of
  // descriptors as far as it goes.
  explicit ServerProcess(ProgramOptions& options);

  size_t descriptorsMax() const { return descriptorsMax_; }

  // Who waits for this server may go on. `status`: what it serves, and where.
  void serving(std::string status);
  // Resolves when the process is to end. Until then SIGHUP reads the configuration again.
  kj::Promise<void> asksToStop(kj::UnixEventPort& port);

 private:
  // kj's own log lines among ours, in one format.
  class KjLog final : public kj::ExceptionCallback {
   public:
    void logMessage(kj::LogSeverity severity, const char* file, int line, int contextDepth,
                    kj::String&& text) override;
  };
  kj::Promise<void> rereadForever(kj::UnixEventPort& port);

  ProgramOptions& options_;
  KjLog kjLog_;
  size_t descriptorsMax_ = 0;
  std::string status_;
};

}  // namespace trainfs
