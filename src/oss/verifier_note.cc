#include "oss/verifier_note.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trainfs/logging.h"

namespace trainfs::oss {

uint64_t VerifierNote::read() const {
  int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  uint64_t verifier = 0;
  bool whole = ::read(fd, &verifier, sizeof verifier) == sizeof verifier;
  close(fd);
  return whole ? verifier : 0;
}

void VerifierNote::write(uint64_t verifier) const {
  mkdir(path_.substr(0, path_.rfind('/')).c_str(), 0700);
  int fd = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool whole = fd >= 0 && ::write(fd, &verifier, sizeof verifier) == sizeof verifier;
  int error = errno;
  if (fd >= 0) close(fd);
  if (whole) return;
  spdlog::warn(
      "cannot write {}: {}; if this server is killed, clients are told that writes may be lost "
      "that are not",
      path_, strerror(error));
}

void VerifierNote::remove() const {
  if (unlink(path_.c_str()) != 0 && errno != ENOENT)
    spdlog::critical("cannot remove {}: {}", path_, strerror(errno));
}

}  // namespace trainfs::oss
