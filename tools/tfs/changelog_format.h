// How records of the changelog are shown. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "changelog_client.h"

namespace trainfs::tfs {

// CREAT, UNLNK ...; the number itself where there is no name.
std::string changeTypeName(uint8_t type);

// A line as lfs changelog prints it, without the newline; the time in UTC.
std::string changeLine(const Change& change);
nlohmann::json changeJson(const Change& change);

}  // namespace trainfs::tfs
