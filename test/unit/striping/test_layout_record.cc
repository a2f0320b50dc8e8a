#include <catch2/catch_test_macros.hpp>

#include "striping/layout_record.h"
#include "striping/placement.h"

using namespace trainfs;
using namespace trainfs::striping;

namespace {

Layout rich() {
  Component first;
  first.endBytes = 8 * kMiB;
  first.pool = "flash";
  first.stripeCount = 9;
  for (uint32_t i = 0; i < 9; i++)
    first.ostList.push_back(20 - i), first.chains.push_back({20 - i});
  first.exists = {true, false, false, true, false, false, false, false, true};
  Component last;
  last.startBytes = first.endBytes;
  last.stripeBytes = 4 * kGiB;
  last.stripeCount = kStripeCountAll;
  last.stripeOffset = 3;
  return {.generation = 77, .components = {first, last}};
}

}  // namespace

TEST_CASE("a layout survives its record") {
  for (const Layout& layout : {Layout{}, Layout{.generation = 5}, defaultLayout(), rich()}) {
    auto decoded = decodeLayout(encodeLayout(layout));
    REQUIRE(decoded);
    REQUIRE(*decoded == layout);
  }
  REQUIRE(*decodeLayout("") == Layout{});
}

TEST_CASE("the record's bytes are those of docs/format-layout.md") {
  Layout layout = defaultLayout();
  setChains(layout.components[0], {{3}});
  layout.components[0].exists[0] = true;
  std::string expected(
      "\x01"                              // version
      "\x01\0\0\0"                        // generation
      "\x01"                              // components
      "\0\0\0\0\0\0\0\0"                  // start
      "\xff\xff\xff\xff\xff\xff\xff\xff"  // end
      "\0\x03"                            // pattern, flags
      "\0\0\x40\0\0\0\0\0"                // stripe size
      "\x01\0\0\0"                        // stripe count
      "\xff\xff\xff\xff"                  // stripe offset
      "\0\0\0\0"                          // pool
      "\0\0"                              // OST list
      "\x03\0\0\0"                        // chains
      "\x01",                             // exists
      51);
  REQUIRE(encodeLayout(layout) == expected);
}

TEST_CASE("damaged, longer and newer records are refused") {
  std::string record = encodeLayout(rich());
  for (size_t length = 1; length < record.size(); length++)
    REQUIRE(decodeLayout(record.substr(0, length)).errnoOrZero() == EPROTO);
  REQUIRE(decodeLayout(record + '\0').errnoOrZero() == EPROTO);
  record[0]++;
  REQUIRE(decodeLayout(record).errnoOrZero() == EPROTO);
}

TEST_CASE("a record that decodes to a layout that cannot be is refused") {
  Layout layout = rich();
  layout.components[1].startBytes += 4 * kGiB;
  REQUIRE(decodeLayout(encodeLayout(layout)).errnoOrZero() == EPROTO);
  layout = rich();
  layout.components[0].stripeBytes = 0;
  REQUIRE(decodeLayout(encodeLayout(layout)).errnoOrZero() == EPROTO);
}
