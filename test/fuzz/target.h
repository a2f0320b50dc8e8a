// What every fuzz target shares. A target is one file NAME_fuzz.cc with seeds() and
// LLVMFuzzerTestOneInput; corpus.cc does the rest. Run one:
//   build-fuzz/test/fuzz/NAME_fuzz -max_total_time=60 CORPUS_DIR
// CORPUS_DIR is made, and filled with the seeds, if it is not there. A finding ends the program and
// leaves its input in ./crash-*; `NAME_fuzz FILE` runs that one again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainfs::fuzz {

// Inputs from which the search begins, made by the code that makes them in earnest.
std::vector<std::string> seeds();

// What must hold whatever the input is.
inline void require(bool condition) {
  if (!condition) __builtin_trap();
}

inline std::string_view text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace trainfs::fuzz
