#include "toml_error.h"

#include <algorithm>

namespace trainfs {
namespace {

std::string_view lineOf(std::string_view content, size_t number) {
  for (; number > 1; --number)
    content.remove_prefix(std::min(content.find('\n'), content.size() - 1) + 1);
  return content.substr(0, content.find('\n'));
}

std::string_view trimmed(std::string_view text) {
  auto begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

bool isBareText(std::string_view value) {
  return !value.empty() && std::string_view("\"'[{#").find(value.front()) == value.npos &&
         value.find_first_not_of("0123456789+-_. ") != value.npos;
}

std::string placeOf(const std::string& path, size_t line) {
  return path + (line == 0 ? "" : ":" + std::to_string(line)) + ": ";
}

}  // namespace

std::string wrongKey(const std::string& path, size_t line, std::string_view key,
                     const std::string& what) {
  return placeOf(path, line) + "key '" + std::string(key) + "' " + what;
}

std::string parseErrorText(const std::string& path, std::string_view content,
                           const toml::parse_error& error) {
  size_t number = error.source().begin.line;
  std::string text = placeOf(path, number), what(error.description());
  auto line = trimmed(lineOf(content, number));
  auto equals = line.find('=');
  if (equals == line.npos || equals == 0 || line.front() == '#') return text + what;
  text += "key '" + std::string(trimmed(line.substr(0, equals))) + "': " + what;
  bool unquoted = isBareText(trimmed(line.substr(equals + 1)));
  return text + (unquoted ? " (a string must be in quotes)" : "");
}

}  // namespace trainfs
