#include "trainfs/server_process.h"

#include <signal.h>
#include <sys/resource.h>

#include "trainfs/logging.h"
#include "trainfs/service_manager.h"

namespace trainfs {

namespace {

// Sockets, and an OSS's object files: all that the system lets us have.
size_t raiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace

void ServerProcess::KjLog::logMessage(kj::LogSeverity, const char* file, int line, int,
                                      kj::String&& text) {
  spdlog::warn("{}:{}: {}", file, line, text.cStr());
}

ServerProcess::ServerProcess(ProgramOptions& options)
    : options_(options), descriptorsMax_(raiseDescriptorLimit()) {
  for (int number : {SIGTERM, SIGINT, SIGHUP}) kj::UnixEventPort::captureSignal(number);
  signal(SIGPIPE, SIG_IGN);
}

void ServerProcess::serving(std::string status) {
  status_ = std::move(status);
  spdlog::info("{}", status_);
  service_manager::ready(status_);
}

kj::Promise<void> ServerProcess::asksToStop(kj::UnixEventPort& port) {
  auto signalled = port.onSignal(SIGTERM).exclusiveJoin(port.onSignal(SIGINT));
  return signalled.ignoreResult().exclusiveJoin(rereadForever(port)).then([] {
    service_manager::stopping();
    spdlog::info("stopping");
  });
}

kj::Promise<void> ServerProcess::rereadForever(kj::UnixEventPort& port) {
  for (;;) {
    co_await port.onSignal(SIGHUP);
    service_manager::reloading();
    options_.reread();
    service_manager::ready(status_);
  }
}

}  // namespace trainfs
