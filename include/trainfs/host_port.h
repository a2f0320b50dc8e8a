// Addresses as people write them. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace trainfs {

// "host", "host:port", "[v6]:port", "v6" -> host (without brackets) and port. Returns false on
// garbage. Port 0 passes: to a listener it means any free one. So does the host "*".
struct HostPort {
  std::string host;
  uint16_t port = 0;
};
bool parseHostPort(const std::string& text, uint16_t defaultPort, HostPort& result);

// For options that say where to listen: what is wrong, or an empty string.
std::string checkListenAddress(const std::string& text);

// The reverse: an IPv6 address goes in brackets.
std::string hostPortText(const HostPort& at);

inline constexpr uint16_t kDefaultMdsPort = 7171;
inline constexpr uint16_t kDefaultOssDataPort = 7180;  // first of one per worker

}  // namespace trainfs
