// Sizes on command lines, as lfs reads them. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace trainfs::tfs {

// "4M", "4MiB", "0x10000", "1.5G": binary units k K m M g G t T p P e E. False: garbage or too
// large.
bool parseBytes(const std::string& text, uint64_t& bytes);

// The same, where a number below 4096 is taken as KiB: nobody means bytes that small.
bool parseStripeSize(const std::string& text, uint64_t& bytes);

}  // namespace trainfs::tfs
