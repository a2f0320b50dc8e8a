#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "lib/temp_dir.h"
#include "trainfs/target.h"

namespace trainfs {

namespace {

const char* kUuid = "0f8fad5b-d9cb-469f-a165-70867728950e";

Target goodOst() {
  return {.kind = Target::Kind::kOst,
          .fsname = "trainfs",
          .index = 3,
          .uuid = kUuid,
          .mgs = false,
          .mgsNodes = {"mds1", "10.0.0.1:7000", "[fe80::1%eth0]:7171"}};
}

Target goodMdt() {
  return {.kind = Target::Kind::kMdt, .fsname = "a_B-9", .index = 0, .uuid = kUuid, .mgs = true};
}

bool same(const Target& a, const Target& b) {
  return a.kind == b.kind && a.fsname == b.fsname && a.index == b.index && a.uuid == b.uuid &&
         a.mgs == b.mgs && a.mgsNodes == b.mgsNodes;
}

const std::string kGoodText = std::string(R"(version = 1
kind = "ost"
fsname = "trainfs"
index = 3
uuid = ")") + kUuid + R"("
mgs = false
mgsnode = ["mds1"]
)";

std::string loadText(std::string text) {
  test::TempDir dir;
  dir.write(kTargetFile, text);
  Target target;
  target.fsname = "before";
  auto wrong = loadTarget(dir.path(), target);
  if (!wrong.empty()) {
    CHECK(target.fsname == "before");  // nothing half-read
    CHECK(wrong.find(kTargetFile) != std::string::npos);
  }
  return wrong;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("targets have the names that Lustre gives them", "[target]") {
  CHECK(targetName(goodOst()) == "trainfs-OST0003");
  CHECK(targetName(goodMdt()) == "a_B-9-MDT0000");
  auto ost = goodOst();
  ost.index = 65534;
  CHECK(targetName(ost) == "trainfs-OSTfffe");
}

TEST_CASE("a saved target is loaded as it was, and saving again replaces it", "[target]") {
  test::TempDir dir;
  for (const Target& target : {goodOst(), goodMdt()}) {
    REQUIRE(saveTarget(dir.path(), target) == "");
    Target loaded;
    REQUIRE(loadTarget(dir.path(), loaded) == "");
    CHECK(same(loaded, target));
    CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
  }
}

TEST_CASE("a target that breaks a limit is neither saved nor loaded", "[target]") {
  test::TempDir dir;
  auto refused = [&](const char* words, auto change, Target target) {
    change(target);
    auto wrong = saveTarget(dir.path(), target);
    CAPTURE(wrong);
    CHECK(wrong.find(words) != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(dir / kTargetFile));
  };
  for (const char* name : {"", "ninechars", "a b", "a/b", "ä", "a\"b"})
    refused("fsname", [&](Target& t) { t.fsname = name; }, goodOst());
  refused("out of range, 0 to 65534", [](Target& t) { t.index = 65535; }, goodOst());
  refused("out of range, 0 to 65535", [](Target& t) { t.index = 65536, t.mgs = false; }, goodMdt());
  refused("UUID", [](Target& t) { t.uuid = "x"; }, goodOst());
  refused("mgs is for an MDT", [](Target& t) { t.mgs = true; }, goodOst());
  refused("MDT of index 0", [](Target& t) { t.index = 1; }, goodMdt());
  refused("mgsnode is missing", [](Target& t) { t.mgsNodes.clear(); }, goodOst());
  refused("mgsnode is missing", [](Target& t) { t.mgs = false; }, goodMdt());
  for (const char* node : {"", ":7171", "host:", "host:0", "host:99999", "a b", "*"})
    refused("is not HOST[:PORT]", [&](Target& t) { t.mgsNodes = {node}; }, goodOst());
  refused("at most 64", [](Target& t) { t.mgsNodes.assign(65, "host"); }, goodOst());
}

TEST_CASE("a damaged target file is refused with its name and the place", "[target]") {
  REQUIRE(loadText(kGoodText) == "");
  CHECK(loadText("").find("'version' is missing") != std::string::npos);
  CHECK(loadText("version = ").find(":1: key 'version': ") != std::string::npos);
  CHECK(loadText(replaced(kGoodText, "\"ost\"", "ost")).find(":2: key 'kind': ") !=
        std::string::npos);
  CHECK(loadText(std::string(4096, '\0')) != "");
  CHECK(loadText(kGoodText + std::string(65 * 1024, '#')).find("larger than") != std::string::npos);
  CHECK(loadText(kGoodText + "extra = 1\n").find(":8: key 'extra' is unknown") !=
        std::string::npos);
  CHECK(loadText(replaced(kGoodText, "version = 1", "version = 2")).find("only 1 is known") !=
        std::string::npos);
  CHECK(loadText(replaced(kGoodText, "\"ost\"", "\"mgt\""))
            .find(":2: key 'kind' is 'mgt', must be 'mdt' or 'ost'") != std::string::npos);
  CHECK(loadText(replaced(kGoodText, "index = 3", "index = -1")).find(":4: key 'index'") !=
        std::string::npos);
  CHECK(loadText(replaced(kGoodText, "index = 3", "index = 4294967299")).find("'index'") !=
        std::string::npos);
  CHECK(loadText(replaced(kGoodText, "index = 3", "index = \"3\""))
            .find(":4: key 'index' has the wrong type") != std::string::npos);
  CHECK(loadText(replaced(kGoodText, "[\"mds1\"]", "\"mds1\""))
            .find(":7: key 'mgsnode' must be an array of strings") != std::string::npos);
  CHECK(loadText(replaced(kGoodText, "[\"mds1\"]", "[1]")).find("array of strings") !=
        std::string::npos);
}

TEST_CASE("a target file cut anywhere is never taken for a whole one", "[target]") {
  for (size_t cut = 0; cut + 2 < kGoodText.size(); ++cut) {  // but for the final newline
    CAPTURE(cut);
    REQUIRE(loadText(kGoodText.substr(0, cut)) != "");
  }
}

TEST_CASE("a directory without a target file says so", "[target]") {
  test::TempDir dir;
  Target target;
  CHECK(loadTarget(dir.path(), target).find("No such file") != std::string::npos);
}

TEST_CASE("a target is locked by one at a time, through a replacement of its file too",
          "[target]") {
  test::TempDir dir;
  REQUIRE(saveTarget(dir.path(), goodOst()) == "");
  {
    TargetLock first, second;
    REQUIRE(lockTarget(dir.path(), first) == "");
    CHECK(lockTarget(dir.path(), second).find("in use") != std::string::npos);
    REQUIRE(saveTarget(dir.path(), goodMdt()) == "");
    CHECK(lockTarget(dir.path(), second).find("in use") != std::string::npos);
    CHECK(second.fd() == -1);
  }
  TargetLock again;
  CHECK(lockTarget(dir.path(), again) == "");
  CHECK(again.fd() >= 0);
  TargetLock elsewhere;
  CHECK(lockTarget(dir / "missing", elsewhere).find("No such file") != std::string::npos);
}

}  // namespace trainfs
