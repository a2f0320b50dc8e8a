// What is wrong with a TOML file, in the words that the programs share.
#pragma once

#include <toml++/toml.h>
#include <string>
#include <string_view>

namespace trainfs {

// "PATH:LINE: key 'KEY' WHAT"; line 0: the file has no such key.
std::string wrongKey(const std::string& path, size_t line, std::string_view key,
                     const std::string& what);

// "PATH:LINE: ", the key of that line of `content` if it has one, and what the parser says.
std::string parseErrorText(const std::string& path, std::string_view content,
                           const toml::parse_error& error);

}  // namespace trainfs
