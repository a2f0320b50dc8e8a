// The layout record: how a layout is stored in an inode and sent to clients. docs/format-layout.md.
#pragma once

#include <string>
#include <string_view>

#include "trainfs/result.h"
#include "trainfs/types.h"

namespace trainfs::striping {

inline constexpr uint8_t kLayoutRecordVersion = 1;

// A layout without components encodes to a record, too; an absent layout is the empty string.
std::string encodeLayout(const Layout& layout);

// EPROTO: damaged, of a newer version, or not passing checkLayout. Empty bytes: an empty layout.
Result<Layout> decodeLayout(std::string_view bytes);

}  // namespace trainfs::striping
