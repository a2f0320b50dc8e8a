#include "small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace trainfs {

std::string readSmallFile(const std::string& path, size_t bytesMax, std::string& content) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return path + ": " + std::strerror(errno);
  content.resize(bytesMax + 1);
  size_t filled = 0;
  ssize_t got;
  do {
    got = read(fd, content.data() + filled, content.size() - filled);
    if (got > 0) filled += got;
  } while ((got > 0 && filled < content.size()) || (got < 0 && errno == EINTR));
  int error = errno;
  close(fd);
  if (got < 0) return path + ": " + std::strerror(error);
  if (filled > bytesMax) return path + ": larger than " + std::to_string(bytesMax) + " bytes";
  content.resize(filled);
  return "";
}

std::string firstLineOf(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace trainfs
