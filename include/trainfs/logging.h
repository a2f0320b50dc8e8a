// Logs: one line per event on stderr, by spdlog. Every program calls startLogging once, first
// thing. Any thread may log; the other functions here are for the main thread.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace trainfs {

bool isLogLevel(const std::string& level);

// `program` is printed in each line, unless stderr is the journal, whose lines carry a priority
// instead. level: trace, debug, info, warning, error, off. Returns false (and changes nothing) for
// an unknown level.
bool startLogging(const std::string& program, const std::string& level);
bool setLogLevel(const std::string& level);

// From now on the file `path` is stderr: what libraries and sanitizers write there goes to the log,
// too. Again with the same path, it begins a new file where the old one was renamed. Returns what
// is wrong, or an empty string.
std::string logTo(const std::string& path);

}  // namespace trainfs
