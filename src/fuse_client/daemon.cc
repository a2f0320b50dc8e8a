#include "fuse_client/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace trainfs::client {

Daemon::Daemon(bool foreground, std::chrono::seconds patience) : foreground_(foreground) {
  if (foreground) return;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) failed(std::string("pipe: ") + std::strerror(errno));
  pid_t child = fork();
  if (child < 0) failed(std::string("fork: ") + std::strerror(errno));
  if (child != 0) {
    close(ends[1]);
    waitForChild(child, ends[0], patience);
  }
  close(ends[0]);
  readyPipe_ = ends[1];
  setsid();
  if (chdir("/") != 0) failed(std::string("/: ") + std::strerror(errno));
}

void Daemon::waitForChild(int child, int pipe, std::chrono::seconds patience) {
  pollfd waiting{.fd = pipe, .events = POLLIN, .revents = 0};
  int readable;
  do {
    readable = poll(&waiting, 1, static_cast<int>(std::chrono::milliseconds(patience).count()));
  } while (readable < 0 && errno == EINTR);
  char byte;
  if (readable > 0 && read(pipe, &byte, 1) == 1) _exit(0);
  if (readable == 0) {
    std::fprintf(stderr, "trainfs-client: the mount does not serve within %lld seconds\n",
                 static_cast<long long>(patience.count()));
    kill(child, SIGKILL);
  }
  waitpid(child, nullptr, 0);  // it has said why
  _exit(1);
}

void Daemon::ready(const std::string& logFile) {
  if (foreground_) return;
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  if (logFile.empty()) {
    auto level = spdlog::get_level();
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "trainfs-client", std::make_shared<spdlog::sinks::syslog_sink_mt>("trainfs-client", LOG_PID,
                                                                          LOG_DAEMON, false)));
    spdlog::set_level(level);
    dup2(null, STDERR_FILENO);
  }
  close(null);
  if (write(readyPipe_, "", 1) != 1) spdlog::warn("nobody waits for the mount any more");
  close(readyPipe_);
}

void Daemon::failed(const std::string& reason) {
  std::fprintf(stderr, "trainfs-client: %s\n", reason.c_str());
  std::fflush(nullptr);
  _exit(1);
}

}  // namespace trainfs::client
