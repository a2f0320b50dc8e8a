#include "trainfs/logging.h"

#include <fcntl.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace trainfs {

namespace {

constexpr std::pair<const char*, spdlog::level::level_enum> kLevels[] = {
    {"trace", spdlog::level::trace}, {"debug", spdlog::level::debug},
    {"info", spdlog::level::info},   {"warning", spdlog::level::warn},
    {"error", spdlog::level::err},   {"off", spdlog::level::off},
};

// "<4>": what the journal takes for a line's priority (sd-daemon(3)).
class Priority final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& line) override {
    static constexpr const char* kOfLevel[] = {"<7>", "<7>", "<6>", "<4>", "<3>", "<2>"};
    const char* priority = kOfLevel[std::min<size_t>(message.level, std::size(kOfLevel) - 1)];
    line.append(priority, priority + std::strlen(priority));
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<Priority>();
  }
};

// systemd.exec(5): $JOURNAL_STREAM is device and inode of the stream, if it is still what we write
// to.
bool stderrIsJournal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat here;
  return stream != nullptr && fstat(STDERR_FILENO, &here) == 0 &&
         std::to_string(here.st_dev) + ":" + std::to_string(here.st_ino) == stream;
}

std::unique_ptr<spdlog::formatter> lineFormat() {
  auto format = std::make_unique<spdlog::pattern_formatter>();
  format->add_flag<Priority>('*');
  // The journal knows time, program and process by itself.
  format->set_pattern(stderrIsJournal() ? "%*%l: %v" : "%Y-%m-%dT%H:%M:%S.%e%z %n[%t] %l: %v");
  return format;
}

}  // namespace

bool isLogLevel(const std::string& level) {
  for (auto& [name, value] : kLevels)
    if (level == name) return true;
  return false;
}

bool startLogging(const std::string& program, const std::string& level) {
  if (!isLogLevel(level)) return false;
  // Written line by line without a buffer: the last line before a crash is the one that is
  // wanted.
  auto logger =
      std::make_shared<spdlog::logger>(program, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(lineFormat());
  spdlog::set_default_logger(std::move(logger));
  return setLogLevel(level);
}

bool setLogLevel(const std::string& level) {
  for (auto& [name, value] : kLevels) {
    if (level != name) continue;
    spdlog::default_logger_raw()->set_level(value);
    return true;
  }
  return false;
}

std::string logTo(const std::string& path) {
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (file < 0) return "log file " + path + ": " + std::strerror(errno);
  bool moved = dup2(file, STDERR_FILENO) >= 0;
  close(file);
  return moved ? "" : "log file " + path + ": " + std::strerror(errno);
}

}  // namespace trainfs
