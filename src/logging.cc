#include "trainfs/logging.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <memory>
#include <utility>

namespace trainfs {

namespace {

constexpr std::pair<const char*, spdlog::level::level_enum> kLevels[] = {
    {"trace", spdlog::level::trace}, {"debug", spdlog::level::debug},
    {"info", spdlog::level::info},   {"warning", spdlog::level::warn},
    {"error", spdlog::level::err},   {"off", spdlog::level::off},
};

}  // namespace

bool isLogLevel(const std::string& level) {
  for (auto& [name, value] : kLevels)
    if (level == name) return true;
  return false;
}

bool startLogging(const std::string& program, const std::string& level) {
  for (auto& [name, value] : kLevels) {
    if (level != name) continue;
    // Written line by line without a buffer: the last line before a crash is the one that is
    // wanted.
    auto logger = std::make_shared<spdlog::logger>(
        program, std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %n[%t] %l: %v");
    logger->set_level(value);
    spdlog::set_default_logger(std::move(logger));
    return true;
  }
  return false;
}

}  // namespace trainfs
