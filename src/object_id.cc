#include "trainfs/object_id.h"

namespace trainfs {

namespace {

void putBigEndian(uint8_t* to, uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i, value >>= 8) to[i] = static_cast<uint8_t>(value);
}

uint64_t getBigEndian(const uint8_t* from, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = (value << 8) | from[i];
  return value;
}

// -1 for anything but a lower-case digit: a name has one form only, or one object would have two
// files.
int hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::array<uint8_t, kObjectIdBytes> encodeObjectId(const ObjectId& id) {
  std::array<uint8_t, kObjectIdBytes> bytes;
  putBigEndian(bytes.data(), id.inode.value, 8);
  putBigEndian(bytes.data() + 8, id.generation, 4);
  bytes[12] = id.component;
  putBigEndian(bytes.data() + 13, id.stripe, 3);
  return bytes;
}

ObjectId decodeObjectId(const uint8_t* bytes16) {
  return {.inode = {getBigEndian(bytes16, 8)},
          .generation = static_cast<uint32_t>(getBigEndian(bytes16 + 8, 4)),
          .component = bytes16[12],
          .stripe = static_cast<uint32_t>(getBigEndian(bytes16 + 13, 3))};
}

std::string objectIdHex(const ObjectId& id) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * kObjectIdBytes);
  for (uint8_t byte : encodeObjectId(id)) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::optional<ObjectId> parseObjectIdHex(std::string_view hex) {
  if (hex.size() != 2 * kObjectIdBytes) return std::nullopt;
  uint8_t bytes[kObjectIdBytes];
  for (size_t i = 0; i < kObjectIdBytes; ++i) {
    int high = hexDigit(hex[2 * i]), low = hexDigit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return decodeObjectId(bytes);
}

}  // namespace trainfs
