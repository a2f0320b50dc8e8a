// Logs: one line per event on stderr, by spdlog. Every program calls startLogging once, first
// thing.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace trainfs {

bool isLogLevel(const std::string& level);

// `program` is printed in each line. level: trace, debug, info, warning, error, off.
// Returns false (and changes nothing) for an unknown level.
bool startLogging(const std::string& program, const std::string& level);

}  // namespace trainfs
