#include <catch2/catch_test_macros.hpp>

#include "trainfs/codec.h"

namespace trainfs {

TEST_CASE("records are read back as they were written, little-endian", "[codec]") {
  auto bytes =
      Writer().put(uint8_t{1}).put(uint32_t{0x02030405}).putString("abc").put(int64_t{-2}).take();
  REQUIRE(bytes.substr(0, 5) == "\x01\x05\x04\x03\x02");
  Reader reader(bytes);
  REQUIRE(reader.get<uint8_t>() == 1);
  REQUIRE(reader.get<uint32_t>() == 0x02030405);
  REQUIRE(reader.getString(3) == "abc");
  REQUIRE_FALSE(reader.finished());
  REQUIRE(reader.get<int64_t>() == -2);
  REQUIRE(reader.finished());
}

TEST_CASE("a record cut anywhere is noticed, and everything after the cut is zero", "[codec]") {
  auto bytes = Writer().put(uint16_t{7}).putString("hello").put(uint64_t{9}).take();
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    CAPTURE(cut);
    Reader reader(std::string_view(bytes).substr(0, cut));
    reader.get<uint16_t>();
    reader.getString(255);
    REQUIRE(reader.get<uint64_t>() == 0);
    REQUIRE_FALSE(reader.ok());
    REQUIRE_FALSE(reader.finished());
  }
}

TEST_CASE("a string longer than allowed, or than the record, is refused", "[codec]") {
  auto bytes = Writer().putString("hello").take();
  REQUIRE(Reader(bytes).getString(5) == "hello");
  Reader strict(bytes);
  REQUIRE(strict.getString(4).empty());
  REQUIRE_FALSE(strict.ok());
  auto lying = Writer().put(UINT32_MAX).take();
  Reader reader(lying);
  REQUIRE(reader.getString(SIZE_MAX).empty());
  REQUIRE_FALSE(reader.ok());
}

}  // namespace trainfs
