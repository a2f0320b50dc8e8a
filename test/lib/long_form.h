// Tests that have a short and a long form: a number in the environment is the long one's.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace trainfs::test {

inline uint64_t longForm(const char* variable, uint64_t shortForm) {
  const char* given = std::getenv(variable);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : shortForm;
}

}  // namespace trainfs::test
