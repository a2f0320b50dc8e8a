// Reading configuration: whole files that have no business being large.
#pragma once

#include <cstddef>
#include <string>

namespace trainfs {

// Empty, or what is wrong, with the path in front.
std::string readSmallFile(const std::string& path, size_t bytesMax, std::string& content);

}  // namespace trainfs
