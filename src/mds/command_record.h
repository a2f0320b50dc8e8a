// Commands as bytes, in the log. Little-endian; docs/format-mdt.md. Pure.
#pragma once

#include <string>
#include <string_view>

#include "mds/command.h"

namespace trainfs::mds {

// Of one command with everything in it; the largest that a client can ask for is far below.
inline constexpr size_t kCommandBytesMax = 4 * kMiB;

std::string encodeCommand(const Command& command);
// Throws kj::Exception when the bytes are damaged, or of a newer version.
Command decodeCommand(std::string_view bytes);

}  // namespace trainfs::mds
