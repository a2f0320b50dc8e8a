// How `tfs find --json` shows what it has found. Pure.
#pragma once

#include <sys/stat.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace trainfs::tfs {

nlohmann::json foundJson(const std::string& path, const struct stat& attributes);

}  // namespace trainfs::tfs
