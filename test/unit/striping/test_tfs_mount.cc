// FIDs, and the texts by which a mount tells of itself.
#include <catch2/catch_test_macros.hpp>

#include "fid.h"
#include "mount_attributes.h"

using namespace trainfs;
using namespace trainfs::tfs;

TEST_CASE("a FID is the inode number in two halves") {
  CHECK(formatFid({42}) == "[0x0:0x2a:0x0]");
  CHECK(formatFid({0x0003'0000'0000'0007}) == "[0x30000:0x7:0x0]");
  for (uint64_t number : {uint64_t{1}, uint64_t{1} << 32, ~uint64_t{0}}) {
    InodeId inode;
    REQUIRE(parseFid(formatFid({number}), inode));
    CHECK(inode == InodeId{number});
  }
  InodeId inode;
  CHECK(parseFid("0x0:0x2a:0x0", inode));
  for (const char* text : {"", "[]", "[0x0:0x2a:0x0", "0x0:0x2a:0x1", "0x0:0x0:0x0", "0x0:0x2a",
                           "0x0:0x2a:0x0 ", "0x100000000:0x0:0x0", "-1:0x2:0x0", "0x0:0x2a:0x0]"}) {
    INFO(text);
    CHECK(!parseFid(text, inode));
  }
}

TEST_CASE("features are lines of name, state and detail") {
  auto features =
      parseFeatures("kernel\t-\t6.18.0\nio_uring\tno\tnot asked for\nepochs\tyes\t\nrubbish\n");
  REQUIRE(features.size() == 3);
  CHECK(features[0].detail == "6.18.0");
  CHECK(features[1].state == "no");
  CHECK(features[1].detail == "not asked for");
  CHECK(features[2].detail.empty());
}

TEST_CASE("statistics are parsed, subtracted, and their shares bounded") {
  auto before = parseStats("counter bytes.read 100\ntimer request.read 2 0 3000 2000 1:2\n");
  auto now = parseStats(
      "counter bytes.read 150\nsomething new\ntimer request.read 12 1 50003000 40000000 1:11 16:1\n"
      "timer broken 1 2\n");
  CHECK(now.timers.size() == 1);
  auto change = now.since(before);
  CHECK(change.counters["bytes.read"] == 50);
  auto& read = change.timers["request.read"];
  CHECK(read.count == 10);
  CHECK(read.errors == 1);
  CHECK(read.quantileMicroseconds(0.5) == 2);
  CHECK(read.quantileMicroseconds(0.99) == 40001);  // the longest, not the end of its bucket
  CHECK(TimerFigures{}.quantileMicroseconds(0.5) == 0);
}
