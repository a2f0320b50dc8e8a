#include "mds/durable_files.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <unistd.h>

namespace trainfs::mds {

std::string readAt(int fd, uint64_t offsetBytes, size_t bytes, const std::string& path) {
  std::string content(bytes, '\0');
  size_t done = 0;
  while (done < bytes) {
    ssize_t got;
    KJ_SYSCALL(got = pread(fd, content.data() + done, bytes - done, offsetBytes + done), path);
    if (got == 0) break;
    done += got;
  }
  content.resize(done);
  return content;
}

void writeAt(int fd, uint64_t offsetBytes, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    ssize_t written;
    KJ_SYSCALL(written = pwrite(fd, bytes.data(), bytes.size(), offsetBytes), path);
    offsetBytes += written;
    bytes.remove_prefix(written);
  }
}

void syncData(int fd, const std::string& path) {
  KJ_SYSCALL(fdatasync(fd), path);
}

void syncDirectory(const std::string& directory) {
  int fd;
  KJ_SYSCALL(fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), directory);
  KJ_DEFER(close(fd));
  KJ_SYSCALL(fsync(fd), directory);
}

}  // namespace trainfs::mds
