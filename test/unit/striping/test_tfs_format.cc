// The printed forms, line for line as `lfs` has them.
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "df_format.h"
#include "layout_format.h"
#include "striping/placement.h"

using namespace trainfs;
using namespace trainfs::tfs;

namespace {

constexpr InodeId kInode{0x0000000000000005};

Component component(uint64_t start, uint64_t end, std::vector<ChainId> chains) {
  Component result;
  result.startBytes = start;
  result.endBytes = end;
  if (!chains.empty()) striping::setChains(result, std::move(chains));
  return result;
}

Striped plain() {
  Striped file{"/mnt/f", kInode, false, false, {1, {component(0, kExtentEof, {{1}, {0}})}}};
  return file;
}

Striped composite() {
  Layout layout{2, {component(0, 64 * kMiB, {{3}}), component(64 * kMiB, kExtentEof, {})}};
  layout.components[1].stripeCount = kStripeCountAll;
  layout.components[1].pool = "flash";
  return {"/mnt/f", kInode, false, false, layout};
}

Striped directory(bool inherited) {
  return {"/mnt/d", kInode, true, inherited, striping::defaultLayout()};
}

Selection all() {
  Selection selection;
  selection.fields = kFieldsDefault;
  return selection;
}

Selection only(uint32_t field) {
  Selection selection;
  selection.fields = field;
  selection.showPath = false;
  return selection;
}

}  // namespace

TEST_CASE("a plain file is a block of fields and a table of objects") {
  REQUIRE(formatStriped(plain(), all()) ==
          "/mnt/f\n"
          "lmm_stripe_count:  2\n"
          "lmm_stripe_size:   1048576\n"
          "lmm_pattern:       raid0\n"
          "lmm_layout_gen:    1\n"
          "lmm_stripe_offset: 1\n"
          "\tobdidx\t\t objid\t\t objid\t\t group\n"
          "\t     1\t    4294967296\t  0x100000000\t           0x5\n"
          "\t     0\t    4294967297\t  0x100000001\t           0x5\n"
          "\n");
}

TEST_CASE("one field alone is its bare value") {
  REQUIRE(formatStriped(plain(), only(kFieldStripeCount)) == "2\n");
  REQUIRE(formatStriped(plain(), only(kFieldStripeSize)) == "1048576\n");
  REQUIRE(formatStriped(plain(), only(kFieldStripeOffset)) == "1\n");
  REQUIRE(formatStriped(plain(), only(kFieldPattern)) == "raid0\n");
  REQUIRE(formatStriped(plain(), only(kFieldGeneration)) == "1\n");
  REQUIRE(formatStriped(plain(), only(kFieldFid)) == "[0x0:0x5:0x0]\n");
  REQUIRE(formatStriped(plain(), only(kFieldComponentCount)) == "0\n");
  REQUIRE(formatStriped(plain(), only(kFieldMirrorCount)) == "1\n");
  REQUIRE(formatStriped(directory(false), only(kFieldStripeCount)) == "1\n");
  REQUIRE(formatStriped(directory(false), only(kFieldStripeOffset)) == "-1\n");
  REQUIRE(formatStriped(composite(), only(kFieldComponentCount)) == "2\n");
  REQUIRE(formatStriped(composite(), only(kFieldGeneration)) == "2\n");
}

TEST_CASE("of a composite file, one field is that of the last component with objects") {
  REQUIRE(formatStriped(composite(), only(kFieldStripeCount)) == "1\n");
  REQUIRE(formatStriped(composite(), only(kFieldStripeOffset)) == "3\n");
  REQUIRE(formatStriped(composite(), only(kFieldComponentEnd)) == "67108864\n");
  REQUIRE(formatStriped(composite(), only(kFieldComponentId)) == "1\n");
  auto second = only(kFieldStripeCount);
  second.componentId = 2;
  REQUIRE(formatStriped(composite(), second) == "-1\n");
}

TEST_CASE("two fields keep their names") {
  REQUIRE(formatStriped(plain(), only(kFieldStripeCount | kFieldStripeSize)) ==
          "lmm_stripe_count:  2\n"
          "lmm_stripe_size:   1048576\n"
          "\n");
}

TEST_CASE("a directory is one line, marked as default only with -v") {
  REQUIRE(formatStriped(directory(true), all()) ==
          "/mnt/d\n"
          "stripe_count:  1 stripe_size:   4194304 pattern:       raid0 stripe_offset: -1\n"
          "\n");
  auto verbose = all();
  verbose.verbose = true;
  REQUIRE(formatStriped(directory(true), verbose) ==
          "/mnt/d\n"
          "(Default) lmm_fid:           [0x0:0x5:0x0]\n"
          "stripe_count:  1 stripe_size:   4194304 pattern:       raid0 stripe_offset: -1\n"
          "\n");
  REQUIRE(formatStriped(directory(false), verbose).find("(Default)") == std::string::npos);
  auto raw = all();
  raw.raw = true;
  REQUIRE(formatStriped(directory(true), raw).find("stripe_count:  0 stripe_size:   0 ") !=
          std::string::npos);
}

TEST_CASE("a composite file is a header and a block per component") {
  REQUIRE(formatStriped(composite(), all()) ==
          "/mnt/f\n"
          "  lcm_layout_gen:    2\n"
          "  lcm_mirror_count:  1\n"
          "  lcm_entry_count:   2\n"
          "    lcme_id:             1\n"
          "    lcme_mirror_id:      0\n"
          "    lcme_flags:          init\n"
          "    lcme_extent.e_start: 0\n"
          "    lcme_extent.e_end:   67108864\n"
          "      lmm_stripe_count:  1\n"
          "      lmm_stripe_size:   1048576\n"
          "      lmm_pattern:       raid0\n"
          "      lmm_layout_gen:    0\n"
          "      lmm_stripe_offset: 3\n"
          "      lmm_objects:\n"
          "      -   0: { l_ost_idx:   3, l_fid: [0x5:0x2:0x0] }\n"
          "\n"
          "    lcme_id:             2\n"
          "    lcme_mirror_id:      0\n"
          "    lcme_flags:          0\n"
          "    lcme_extent.e_start: 67108864\n"
          "    lcme_extent.e_end:   EOF\n"
          "      lmm_stripe_count:  -1\n"
          "      lmm_stripe_size:   1048576\n"
          "      lmm_pattern:       raid0\n"
          "      lmm_layout_gen:    0\n"
          "      lmm_stripe_offset: -1\n"
          "      lmm_pool:          flash\n"
          "\n");
}

TEST_CASE("YAML has no paths, no blank lines and no brackets") {
  auto yaml = all();
  yaml.yaml = true;
  REQUIRE(formatStriped(plain(), yaml) ==
          "lmm_stripe_count:  2\n"
          "lmm_stripe_size:   1048576\n"
          "lmm_pattern:       raid0\n"
          "lmm_layout_gen:    1\n"
          "lmm_stripe_offset: 1\n"
          "lmm_objects:\n"
          "      - l_ost_idx: 1\n"
          "        l_fid:     0x5:0x1:0x0\n"
          "      - l_ost_idx: 0\n"
          "        l_fid:     0x5:0x1:0x1\n");
  std::string text = formatStriped(composite(), yaml);
  REQUIRE(text.find("lcm_layout_gen:    2\n"
                    "lcm_mirror_count:  1\n"
                    "lcm_entry_count:   2\n"
                    "components:\n"
                    "  - lcme_id:             1\n"
                    "    lcme_mirror_id:      0\n"
                    "    lcme_flags:          init\n"
                    "    lcme_extent.e_start: 0\n"
                    "    lcme_extent.e_end:   67108864\n"
                    "    sub_layout:\n"
                    "      lmm_stripe_count:  1\n") == 0);
}

TEST_CASE("-O shows only what is on that OST, and marks it") {
  auto selection = all();
  selection.ost = 0;
  std::string text = formatStriped(plain(), selection);
  REQUIRE(text.find("\t     0\t    4294967297\t  0x100000001\t           0x5 *\n") !=
          std::string::npos);
  REQUIRE(text.find("\t     1\t") == std::string::npos);
  selection.ost = 7;
  REQUIRE(formatStriped(plain(), selection) == "");
  REQUIRE(formatStriped(directory(false), selection) == "");
}

TEST_CASE("components are chosen by id, state and bounds") {
  auto selection = all();
  selection.initialized = false;
  REQUIRE(formatStriped(composite(), selection).find("lcme_id:             1") ==
          std::string::npos);
  selection = all();
  selection.componentEnd = Bound{'-', 65 * kMiB};
  REQUIRE(formatStriped(composite(), selection).find("lcme_id:             2") ==
          std::string::npos);
  selection.componentEnd = Bound{'=', kExtentEof};
  REQUIRE(formatStriped(composite(), selection).find("lcme_id:             1") ==
          std::string::npos);
}

TEST_CASE("JSON carries the whole layout") {
  auto json = stripedJson(composite());
  REQUIRE(json["components"].size() == 2);
  REQUIRE(json["components"][0]["objects"][0]["ost"] == 3);
  REQUIRE(json["components"][1]["end"].is_null());
  REQUIRE(json["components"][1]["pool"] == "flash");
  REQUIRE(json["generation"] == 2);
}

// ---- df ----

namespace {

TargetStatus target(uint32_t index, uint64_t total, uint64_t free, uint64_t available) {
  return {index, "uuid", "host:1", true, total, free, available, 1000, 900};
}

ClusterStatus status() {
  ClusterStatus result;
  result.fsname = "trainfs";
  result.mdts = {target(0, 1 * kGiB, kGiB / 2, kGiB / 4)};
  result.osts = {target(0, 100 * kGiB, 60 * kGiB, 50 * kGiB), target(1, 100 * kGiB, 100 * kGiB, 0)};
  result.osts.push_back(target(2, 0, 0, 0));
  result.osts[2].active = false;
  return result;
}

}  // namespace

TEST_CASE("df prints a row per target and a summary of the OSTs") {
  REQUIRE(formatDf(status(), "/mnt/trainfs", {}) ==
          "UUID                   1K-blocks        Used   Available Use% Mounted on\n"
          "trainfs-MDT0000_UUID     1048576      524288      262144  67% /mnt/trainfs[MDT:0]\n"
          "trainfs-OST0000_UUID   104857600    41943040    52428800  45% /mnt/trainfs[OST:0]\n"
          "trainfs-OST0001_UUID   104857600           0           0   0% /mnt/trainfs[OST:1] S\n"
          "trainfs-OST0002_UUID: inactive device\n"
          "\n"
          "filesystem_summary:    209715200    41943040    52428800  45% /mnt/trainfs\n"
          "\n");
}

TEST_CASE("df -h and -i") {
  DfOptions human;
  human.human = true;
  human.ost = 0;
  human.mdts = false;
  REQUIRE(formatDf(status(), "/m", human) ==
          "trainfs-OST0000_UUID      100.0G       40.0G       50.0G  45% /m[OST:0]\n");
  DfOptions inodes;
  inodes.inodes = true;
  inodes.onlySummary = true;
  REQUIRE(formatDf(status(), "/m", inodes) ==
          "filesystem_summary:         1000         100         900  10% /m\n");
}

TEST_CASE("df --output takes columns by any of their names") {
  DfOptions options;
  for (const char* name : {"source", "bavail"}) {
    DfField field{};
    REQUIRE(parseDfField(name, field));
    options.fields.push_back(field);
  }
  options.header = false;
  options.mdts = false;
  REQUIRE(formatDf(status(), "/m", options) ==
          "trainfs-OST0000_UUID    52428800\n"
          "trainfs-OST0001_UUID           0\n"
          "trainfs-OST0002_UUID: inactive device\n");
  DfField field{};
  REQUIRE_FALSE(parseDfField("nothing", field));
}

TEST_CASE("the summary has no more free inodes than the OSTs have objects left") {
  auto scarce = status();
  scarce.osts[0].freeFiles = 10;
  scarce.osts[1].freeFiles = 5;
  auto sum = summarise(scarce);
  REQUIRE(sum.freeFiles == 15);
  REQUIRE(sum.files == 115);
  scarce.osts.clear();
  REQUIRE(summarise(scarce).totalBytes == kGiB);
}
