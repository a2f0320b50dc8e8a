#include "fuse_client/remount.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "fuse_client/mount_control.h"

namespace trainfs::client {

namespace {

constexpr unsigned kPatienceSeconds = 30;  // for the mount to answer

// As mount(8) says them. The last one that is given counts.
struct Flag {
  const char* on;
  const char* off;
  unsigned long bit;
};
constexpr Flag kFlags[] = {
    {"ro", "rw", MS_RDONLY},
    {"nosuid", "suid", MS_NOSUID},
    {"nodev", "dev", MS_NODEV},
    {"noexec", "exec", MS_NOEXEC},
    {"sync", "async", MS_SYNCHRONOUS},
    {"dirsync", "", MS_DIRSYNC},
    {"noatime", "atime", MS_NOATIME},
    {"nodiratime", "diratime", MS_NODIRATIME},
    {"relatime", "norelatime", MS_RELATIME},
    {"nosymfollow", "symfollow", 256},  // MS_NOSYMFOLLOW, since Linux 5.10
};

std::string plain(const std::string& text) {  // mountinfo writes white space as \ooo
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    bool escape = text[i] == '\\' && i + 3 < text.size() &&
                  text.find_first_not_of("01234567", i + 1) >= i + 4;
    result += escape ? static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8)) : text[i];
    if (escape) i += 3;
  }
  return result;
}

// What is mounted there, on top of whatever else.
std::optional<MountLine> mountAt(const std::string& mountPoint) {
  std::ifstream mounts("/proc/self/mountinfo");
  std::optional<MountLine> found;
  MountLine each;
  for (std::string line; std::getline(mounts, line);)
    if (parseMountLine(line, each) && each.mountPoint == mountPoint) found = each;
  return found;
}

class Root {
 public:
  explicit Root(const std::string& mountPoint) {
    // Whoever asks a mount whose servers are away waits; a signal ends that.
    struct sigaction interrupt{};
    interrupt.sa_handler = [](int) {};
    sigaction(SIGALRM, &interrupt, nullptr);
    alarm(kPatienceSeconds);
    fd_ = open(mountPoint.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  ~Root() {
    alarm(0);
    if (fd_ >= 0) close(fd_);
  }
  Root(const Root&) = delete;

  std::string call(unsigned command, ControlText& text) {
    if (fd_ >= 0 && ioctl(fd_, command, &text) == 0) return {};
    if (errno == EINTR)
      return "it does not answer within " + std::to_string(kPatienceSeconds) + " seconds";
    if (errno == ENOTTY) return "its trainfs-client is of another version, without remount";
    return std::strerror(errno);
  }

 private:
  int fd_;
};

std::string changeFlags(const std::string& mountPoint, unsigned long flags) {
  if (::mount("none", mountPoint.c_str(), nullptr, MS_REMOUNT | flags, nullptr) == 0) return {};
  std::string why = std::strerror(errno);
  if (errno == EBUSY) why += " (files are open for writing)";
  return "remount " + mountPoint + ": " + why;
}

}  // namespace

// ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [OPTIONAL...] - TYPE SOURCE OPTIONS; see proc(5).
bool parseMountLine(const std::string& line, MountLine& result) {
  std::istringstream words(line);
  std::string word;
  for (int i = 0; i < 4; ++i) words >> word;
  words >> result.mountPoint >> result.options;
  while (words >> word && word != "-") {
  }
  words >> result.type >> result.source >> result.superOptions;
  result.mountPoint = plain(result.mountPoint);
  result.source = plain(result.source);
  return !words.fail();
}

unsigned long mountFlags(const MountLine& line) {
  unsigned long flags = 0;
  std::istringstream words(line.options + "," + line.superOptions);
  for (std::string word; std::getline(words, word, ',');)
    for (auto& flag : kFlags)
      if (word == flag.on) flags |= flag.bit;
  return flags;
}

unsigned long withOptions(unsigned long flags, const MountOptions& options) {
  flags = options.readOnly ? flags | MS_RDONLY : flags & ~MS_RDONLY;
  for (auto& option : options.kernelOptions)
    for (auto& flag : kFlags) {
      if (option == flag.on) flags |= flag.bit;
      if (option == flag.off) flags &= ~flag.bit;
    }
  return flags;
}

std::string remount(const std::string& source, const std::string& mountPoint,
                    const std::vector<std::string>& lists, bool sloppy) {
  auto there = mountAt(mountPoint);
  if (!there || there->type != "fuse.trainfs")
    return "no trainfs is mounted at " + mountPoint + ": nothing to remount";
  if (!source.empty() && source != there->source)
    return there->source + " is mounted at " + mountPoint + ", not " + source;
  Root root(mountPoint);
  ControlText text{};
  if (auto wrong = root.call(kGetOptions, text); !wrong.empty()) return mountPoint + ": " + wrong;

  MountOptions present;
  if (auto wrong = parseOptionList(text.text, false, present); !wrong.empty()) return wrong;
  present.readOnly = mountFlags(*there) & MS_RDONLY;
  MountOptions wanted = present;
  for (auto& list : lists)
    if (auto wrong = parseOptionList(list, sloppy, wanted); !wrong.empty()) return wrong;
  if (auto wrong = checkRemount(present, wanted); !wrong.empty()) return wrong;

  auto changes = optionList(wanted);
  text = {};
  changes.copy(text.text, sizeof text.text - 1);
  if (auto wrong = root.call(kChangeOptions, text); !wrong.empty())
    return mountPoint + ": " + wrong;
  if (text.text[0] != '\0') return text.text;
  return changeFlags(mountPoint, withOptions(mountFlags(*there), wanted));
}

}  // namespace trainfs::client
