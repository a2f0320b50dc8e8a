// What the --json of all commands has in common.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "trainfs/types.h"

namespace trainfs::tfs {

// "2026-12-03T10:00:00.000000000Z"
std::string jsonTime(Time time);

// One line, without its end. Names are any bytes: what is not UTF-8 is replaced.
std::string jsonLine(const nlohmann::json& json);
// The same over several lines, for people.
std::string jsonBlock(const nlohmann::json& json);

}  // namespace trainfs::tfs
