// The two outer forms of an ObjectId: 16 bytes on the wire and in keys, 32 hex digits as a file
// name.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trainfs/types.h"

namespace trainfs {

inline constexpr size_t kObjectIdBytes = 16;

// Big-endian, so that keys of one file's objects sort together: inode, generation, component,
// stripe.
std::array<uint8_t, kObjectIdBytes> encodeObjectId(const ObjectId& id);
ObjectId decodeObjectId(const uint8_t* bytes16);

// 32 lower-case hex digits of the encoded form.
std::string objectIdHex(const ObjectId& id);
std::optional<ObjectId> parseObjectIdHex(std::string_view hex);

}  // namespace trainfs
