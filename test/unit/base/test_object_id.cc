#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "lib/seed.h"
#include "trainfs/object_id.h"

namespace trainfs {

namespace {

ObjectId randomObject(test::Random& random) {
  return {.inode = {random.between(0, UINT64_MAX)},
          .generation = static_cast<uint32_t>(random.between(0, UINT32_MAX)),
          .component = static_cast<uint8_t>(random.between(0, UINT8_MAX)),
          .stripe = static_cast<uint32_t>(random.between(0, (1u << 24) - 1))};
}

}  // namespace

TEST_CASE("the encoded form of an object is big-endian, inode first", "[object_id]") {
  ObjectId id{.inode = {0x0001020304050607},
              .generation = 0x08090a0b,
              .component = 0x0c,
              .stripe = 0x0d0e0f};
  REQUIRE(objectIdHex(id) == "000102030405060708090a0b0c0d0e0f");
}

TEST_CASE("every object survives its two outer forms, which sort as it does", "[object_id]") {
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  test::Random random(seed);
  for (int i = 0; i < 2000; ++i) {
    ObjectId a = randomObject(random), b = randomObject(random);
    if (random.chance(50)) b.inode = a.inode;
    REQUIRE(decodeObjectId(encodeObjectId(a).data()) == a);
    REQUIRE(parseObjectIdHex(objectIdHex(a)) == a);
    REQUIRE((encodeObjectId(a) < encodeObjectId(b)) == (a < b));
    REQUIRE((objectIdHex(a) < objectIdHex(b)) == (a < b));
  }
}

TEST_CASE("what is not exactly 32 lower-case hex digits names no object", "[object_id]") {
  std::string good = objectIdHex({.inode = {0xabcdef}, .generation = 1});
  REQUIRE(parseObjectIdHex(good));
  for (std::string bad : {std::string(), good.substr(1), good + "0", std::string(32, 'g'),
                          std::string(31, '0') + "\0"}) {
    CAPTURE(bad);
    REQUIRE_FALSE(parseObjectIdHex(bad));
  }
  std::string upper = good;
  std::replace(upper.begin(), upper.end(), 'a', 'A');
  REQUIRE_FALSE(parseObjectIdHex(upper));
}

}  // namespace trainfs
