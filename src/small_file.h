// Reading files that have no business being large: configuration, and what the kernel tells.
#pragma once

#include <cstddef>
#include <string>

namespace trainfs {

// Empty, or what is wrong, with the path in front.
std::string readSmallFile(const std::string& path, size_t bytesMax, std::string& content);

// Of a file of the kernel's, which is one line; empty if it cannot be read.
std::string firstLineOf(const std::string& path);

}  // namespace trainfs
