#include "trainfs/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace trainfs::service_manager {

namespace {

// One line per variable, "NAME=value". Whoever listens may have gone: then it is not told.
void send(const std::string& variables) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  // '@' in front: an abstract socket, whose name begins with a zero byte.
  if (path == nullptr || (path[0] != '/' && path[0] != '@') ||
      std::strlen(path) >= sizeof address.sun_path)
    return;
  std::strcpy(address.sun_path, path);
  if (path[0] == '@') address.sun_path[0] = '\0';
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  socklen_t bytes = offsetof(sockaddr_un, sun_path) + std::strlen(path);
  (void)sendto(fd, variables.data(), variables.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
               reinterpret_cast<sockaddr*>(&address), bytes);
  close(fd);
}

}  // namespace

void ready(const std::string& status) {
  send("READY=1\nSTATUS=" + status);
}

void status(const std::string& status) {
  send("STATUS=" + status);
}

void reloading() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  auto microseconds = now.tv_sec * 1'000'000LL + now.tv_nsec / 1000;
  send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(microseconds));
}

void stopping() {
  send("STOPPING=1");
}

}  // namespace trainfs::service_manager
