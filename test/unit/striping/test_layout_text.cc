#include <catch2/catch_test_macros.hpp>

#include "striping/layout_text.h"
#include "striping/placement.h"

using namespace trainfs;
using namespace trainfs::striping;

TEST_CASE("a layout is one line per component") {
  Layout layout = defaultLayout();
  REQUIRE(formatLayout(layout) ==
          "generation=1\n"
          "start=0 end=eof pattern=raid0 stripe_size=4194304 stripe_count=1 stripe_offset=-1");
  layout.components[0].endBytes = 4 * kMiB;
  layout.components[0].stripeCount = 2;
  layout.components[0].pool = "flash";
  layout.components[0].ostList = {1, 0};
  layout.components[0].chains = {{1}, {0}};
  layout.components[0].exists = {true, false};
  Component& last = layout.components.emplace_back();
  last.startBytes = 4 * kMiB;
  last.stripeCount = kStripeCountAll;
  std::string text =
      "generation=1\n"
      "start=0 end=4194304 pattern=raid0 stripe_size=4194304 stripe_count=2 stripe_offset=-1 "
      "pool=flash osts=1,0 chains=1,0 exists=1,0\n"
      "start=4194304 end=eof pattern=raid0 stripe_size=1048576 stripe_count=-1 stripe_offset=-1";
  REQUIRE(formatLayout(layout) == text);
  auto kept = parseLayout(text, StateFields::kKeep);
  REQUIRE(kept.error.empty());
  REQUIRE(kept.layout == layout);
}

TEST_CASE("who sets a layout cannot choose its generation, chains or existing objects") {
  auto parsed = parseLayout("generation=9\nstripe_count=2 chains=5,6 exists=1,1");
  REQUIRE(parsed.error.empty());
  REQUIRE(parsed.layout.generation == 0);
  REQUIRE(parsed.layout.components[0].chains.empty());
  REQUIRE(parsed.layout.components[0].exists.empty());
  REQUIRE(parsed.layout.components[0].stripeCount == 2);
}

TEST_CASE("fields that are left out take their defaults") {
  auto parsed = parseLayout("end=64M stripe_count=1\nstripe_size=1M osts=3,1\n");
  REQUIRE(parsed.error.empty());
  const auto& components = parsed.layout.components;
  REQUIRE(components.size() == 2);
  REQUIRE(components[0].stripeBytes == 4 * kMiB);
  REQUIRE(components[1].startBytes == 64 * kMiB);
  REQUIRE(components[1].endBytes == kExtentEof);
  REQUIRE(components[1].stripeCount == 2);
  REQUIRE(components[1].stripeOffset == kAnyOst);
}

TEST_CASE("a default stripe size shrinks to fit the component's end") {
  auto parsed = parseLayout("end=1M\nend=1088K\nend=-1");
  REQUIRE(parsed.error.empty());
  REQUIRE(parsed.layout.components[0].stripeBytes == kMiB);
  REQUIRE(parsed.layout.components[1].stripeBytes == 64 * kKiB);
  REQUIRE(parsed.layout.components[2].stripeBytes == 4 * kMiB);
}

TEST_CASE("bad text is refused with the field's name") {
  auto error = [](std::string_view text) { return parseLayout(text).error; };
  REQUIRE(error("") == "there is no component");
  REQUIRE(error("generation=1") == "there is no component");
  REQUIRE(error("generation=x\nend=eof") == "bad generation 'x'");
  REQUIRE(error("stripes=4") == "component 1: there is no field 'stripes'");
  REQUIRE(error("stripe_count") == "component 1: 'stripe_count' is not KEY=VALUE");
  REQUIRE(error("stripe_count=") == "component 1: bad stripe_count ''");
  REQUIRE(error("stripe_count=4x") == "component 1: bad stripe_count '4x'");
  REQUIRE(error("stripe_count=-2") == "component 1: bad stripe_count '-2'");
  REQUIRE(error("stripe_count=4294967295") == "component 1: bad stripe_count '4294967295'");
  REQUIRE(error("stripe_count=1 stripe_count=1") == "component 1: 'stripe_count' is given twice");
  REQUIRE(error("end=64M\nosts=1,") == "component 2: bad osts '1,'");
  REQUIRE(error("osts=,1") == "component 1: bad osts ',1'");
  REQUIRE(error("osts=65536") == "component 1: bad osts '65536'");
  REQUIRE(error("pattern=raid6") == "component 1: bad pattern 'raid6'");
  REQUIRE(error("pool=a/b") == "component 1: bad pool 'a/b'");
  REQUIRE(error("stripe_size=100K") == "component 1: stripe size is not a multiple of 64K");
  REQUIRE(error("end=eof\nend=eof") == "component 2: end is not beyond start");
  REQUIRE(error(std::string(kLayoutTextBytesMax + 1, ' ')) == "the text is too long");
  std::string many;
  for (int i = 1; i <= 33; i++) many += "end=" + std::to_string(i) + "M\n";
  REQUIRE(error(many) == "component 33: too many components");
}

TEST_CASE("sizes take binary suffixes") {
  uint64_t bytes = 0;
  REQUIRE((parseSize("0", bytes) && bytes == 0));
  REQUIRE((parseSize("64k", bytes) && bytes == 64 * kKiB));
  REQUIRE((parseSize("4M", bytes) && bytes == 4 * kMiB));
  REQUIRE((parseSize("2g", bytes) && bytes == 2 * kGiB));
  REQUIRE((parseSize("1T", bytes) && bytes == 1024 * kGiB));
  REQUIRE((parseSize("18446744073709551615", bytes) && bytes == ~uint64_t{0}));
  for (const char* bad : {"", "M", "4MM", "x", "-1", "+1", " 1", "1 ", "0x10", "1.5M",
                          "18446744073709551616", "16777216T"})
    REQUIRE_FALSE(parseSize(bad, bytes));
}
