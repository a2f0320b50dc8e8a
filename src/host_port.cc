#include "trainfs/host_port.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace trainfs {

namespace {

bool isHost(const std::string& host) {
  if (host == "*") return true;
  auto legal = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_';
  };
  return !host.empty() && host.size() <= 255 && std::all_of(host.begin(), host.end(), legal);
}

bool isV6(std::string host) {
  if (auto zone = host.find('%'); zone != std::string::npos) {
    if (!isHost(host.substr(zone + 1))) return false;
    host.resize(zone);
  }
  in6_addr address;
  return inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool parsePort(std::string_view text, uint16_t& port) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

bool parseHostPort(const std::string& text, uint16_t defaultPort, HostPort& result) {
  HostPort parsed{.host = text, .port = defaultPort};
  if (!text.empty() && text[0] == '[') {
    auto close = text.find(']');
    if (close == std::string::npos) return false;
    parsed.host = text.substr(1, close - 1);
    auto rest = std::string_view(text).substr(close + 1);
    if (!rest.empty() && (rest[0] != ':' || !parsePort(rest.substr(1), parsed.port))) return false;
    if (!isV6(parsed.host)) return false;
  } else if (!isV6(text)) {
    auto colon = text.find(':');
    parsed.host = text.substr(0, colon);
    if (colon != std::string::npos &&
        !parsePort(std::string_view(text).substr(colon + 1), parsed.port))
      return false;
    if (!isHost(parsed.host)) return false;
  }
  result = std::move(parsed);
  return true;
}

std::string checkListenAddress(const std::string& text) {
  HostPort parsed;
  return parseHostPort(text, 0, parsed) ? "" : "must be HOST[:PORT]";
}

std::string hostPortText(const HostPort& at) {
  bool v6 = at.host.find(':') != std::string::npos;
  return (v6 ? "[" + at.host + "]" : at.host) + ":" + std::to_string(at.port);
}

}  // namespace trainfs
