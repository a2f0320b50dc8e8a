#include "json_text.h"

#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

namespace trainfs::tfs {
namespace {

constexpr auto kReplace = nlohmann::json::error_handler_t::replace;

}  // namespace

std::string jsonTime(Time time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:09}Z",
                     fmt::gmtime(static_cast<std::time_t>(time.seconds)), time.nanoseconds);
}

std::string jsonLine(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, kReplace);
}

std::string jsonBlock(const nlohmann::json& json) {
  return json.dump(2, ' ', false, kReplace);
}

}  // namespace trainfs::tfs
