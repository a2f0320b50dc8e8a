// Little-endian encoding of records, with every read checked against the bytes that are there.
// A Reader never throws and never reads past its end: after a short or bad read ok() is false and
// every further value is zero, so a record is decoded straight through and checked once at the end.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace trainfs {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are copied as they are");

class Writer {
 public:
  template <typename T>
    requires std::is_integral_v<T>
  Writer& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  // A length (32 bits) and the bytes.
  Writer& putString(std::string_view text) {
    put(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
    requires std::is_integral_v<T>
  T get() {
    T value{};
    if (rest_.size() < sizeof value) return fail(), value;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  // A view into the bytes given to the constructor.
  std::string_view getString(size_t bytesMax) {
    auto length = get<uint32_t>();
    if (length > bytesMax || length > rest_.size()) return fail(), std::string_view{};
    auto text = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return text;
  }
  void fail() { ok_ = false, rest_ = {}; }
  bool ok() const { return ok_; }
  bool finished() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace trainfs
