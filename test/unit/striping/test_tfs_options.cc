#include <catch2/catch_test_macros.hpp>
#include <sstream>

#include "getstripe_options.h"
#include "mounts.h"
#include "setstripe_options.h"
#include "sizes.h"
#include "striping/layout.h"
#include "striping/layout_text.h"

using namespace trainfs;
using namespace trainfs::tfs;

namespace {

// A command line, cut at spaces; '' is an empty word.
class Words {
 public:
  explicit Words(const std::string& line) {
    std::istringstream words(line);
    for (std::string word; words >> word;) words_.push_back(word == "''" ? "" : word);
    for (auto& word : words_) pointers_.push_back(word.data());
    pointers_.push_back(nullptr);
  }
  int argc() const { return static_cast<int>(words_.size()); }
  char** argv() { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

SetstripeRequest setstripe(const std::string& line) {
  Words words("setstripe " + line);
  return parseSetstripe(words.argc(), words.argv());
}

std::string layoutOf(const std::string& line) {
  auto request = setstripe(line);
  INFO(line);
  REQUIRE(request.error == "");
  std::string text = striping::formatLayout(request.layout);
  return text.substr(text.find('\n') + 1);
}

GetstripeRequest getstripe(const std::string& line) {
  Words words("getstripe " + line);
  return parseGetstripe(words.argc(), words.argv());
}

}  // namespace

TEST_CASE("setstripe options make one component without -E") {
  REQUIRE(layoutOf("-c 4 -S 1M f") ==
          "start=0 end=eof pattern=raid0 stripe_size=1048576 stripe_count=4 stripe_offset=-1");
  REQUIRE(layoutOf("f -c -1 -i 3") ==
          "start=0 end=eof pattern=raid0 stripe_size=4194304 stripe_count=-1 stripe_offset=3");
  REQUIRE(
      layoutOf("--stripe-count=2 --stripe-size 64 --pool ssd f") ==
      "start=0 end=eof pattern=raid0 stripe_size=65536 stripe_count=2 stripe_offset=-1 pool=ssd");
  REQUIRE(layoutOf("--stripe-c=2 -p fs.ssd f").find("stripe_count=2 stripe_offset=-1 pool=ssd") !=
          std::string::npos);
}

TEST_CASE("an OST list is taken in its order, ranges and all") {
  REQUIRE(layoutOf("-o 3,1 f").find("stripe_count=2 stripe_offset=-1 osts=3,1") !=
          std::string::npos);
  REQUIRE(layoutOf("-o 4-6 -o 0x1 f").find("osts=4,5,6,1") != std::string::npos);
  REQUIRE(layoutOf("-o 1-3 -i 2 -c 3 f").find("osts=2,3,1") != std::string::npos);
  REQUIRE(layoutOf("-o 1-3 -c -1 f").find("stripe_count=3") != std::string::npos);
}

TEST_CASE("each -E begins a component, which inherits size, count and pool as with lfs") {
  REQUIRE(
      layoutOf("-E 64M -c 1 -E -1 -c 4 f") ==
      "start=0 end=67108864 pattern=raid0 stripe_size=4194304 stripe_count=1 stripe_offset=-1\n"
      "start=67108864 end=eof pattern=raid0 stripe_size=4194304 stripe_count=4 stripe_offset=-1");
  REQUIRE(layoutOf("-E 1M -E 64M -S 1M -c 2 -p a -i 1 -E eof f") ==
          "start=0 end=1048576 pattern=raid0 stripe_size=1048576 stripe_count=1 stripe_offset=-1\n"
          "start=1048576 end=67108864 pattern=raid0 stripe_size=1048576 stripe_count=2 "
          "stripe_offset=1 pool=a\n"
          "start=67108864 end=eof pattern=raid0 stripe_size=1048576 stripe_count=2 "
          "stripe_offset=-1 pool=a");
  // A default size fits each component.
  REQUIRE(
      layoutOf("-E 1M -E -1 f") ==
      "start=0 end=1048576 pattern=raid0 stripe_size=1048576 stripe_count=1 stripe_offset=-1\n"
      "start=1048576 end=eof pattern=raid0 stripe_size=4194304 stripe_count=1 stripe_offset=-1");
}

TEST_CASE("nothing but defaults asks for no layout") {
  REQUIRE(setstripe("d").layout.components.empty());
  REQUIRE(setstripe("-c 0 -S 0 -i -1 -p '' d").layout.components.empty());
  REQUIRE(setstripe("-d d").remove);
  REQUIRE(setstripe("a b -c 1 c").paths == std::vector<std::string>{"a", "b", "c"});
  REQUIRE(setstripe("-- -c").paths == std::vector<std::string>{"-c"});
  REQUIRE(setstripe("--mode=600 f").mode == 0600);
  REQUIRE(setstripe("--copy=x f").copyFrom == "x");
  REQUIRE(setstripe("--help").help);
}

TEST_CASE("setstripe says what is wrong with a command line") {
  auto error = [](const std::string& line) { return setstripe(line).error; };
  REQUIRE(error("-c 2") == "FILE must be specified");
  REQUIRE(error("-c x f") == "invalid stripe count 'x'");
  REQUIRE(error("-c -2 f") == "invalid stripe count '-2'");
  REQUIRE(error("-c 2001 f") == "invalid stripe count '2001'");
  REQUIRE(error("-c '' f") == "invalid stripe count ''");
  REQUIRE(error("-c") == "option '-c' needs a value");
  REQUIRE(error("-S 100K f") == "invalid stripe size '100K': it must be a multiple of 64K");
  REQUIRE(error("-S -1 f") == "invalid stripe size '-1': it must be a multiple of 64K");
  REQUIRE(error("-S 8G f") == "invalid stripe size '8G': at most 4G");
  REQUIRE(error("-i 70000 f") == "invalid stripe offset '70000'");
  for (const char* list : {"1,", ",1", "1,,2", "3-1", "a", "-1", "1-", "70000", "0-9999", "''"})
    REQUIRE(error(std::string("-o ") + list + " f").find("invalid OST target(s)") == 0);
  REQUIRE(error("-o 1,1 f") ==
          "invalid OST target(s) '1,1': OST 1 twice; overstriping (-C) is not supported");
  REQUIRE(error("-o 1,2 -c 3 f") == "stripe count 3 is not the number of OSTs listed (2)");
  REQUIRE(error("-o 1,2 -i 3 f") == "stripe offset 3 is not in the list of OSTs");
  REQUIRE(error("-p a/b f").find("invalid pool name 'a/b'") == 0);
  REQUIRE(error("-p sixteen-letters- f").find("invalid pool name") == 0);
  REQUIRE(error("-E 100K f").find("invalid component end '100K'") == 0);
  REQUIRE(error("-E 0 f").find("invalid component end '0'") == 0);
  REQUIRE(error("-E 64M -E 32M f") == "invalid layout: component 2: end is not beyond start");
  REQUIRE(error("-E -1 -E -1 f") == "invalid layout: component 2: end is not beyond start");
  REQUIRE(error("-E 1M -S 4M f") ==
          "invalid layout: component 1: end is not a multiple of the stripe size");
  REQUIRE(error("-d -c 1 f").find("option -d is mutually exclusive") == 0);
  REQUIRE(error("--copy=x -c 1 f").find("can't specify --copy") == 0);
  REQUIRE(error("-N2 f").find("mirrors (-N) are not supported") == 0);
  REQUIRE(error("--mirror-count f").find("mirrors (-N) are not supported") == 0);
  REQUIRE(error("-E 1M -L mdt -E -1 f").find("layout 'mdt' is not supported") == 0);
  REQUIRE(error("-L raid6 f") == "layout 'raid6' is unknown; supported is 'raid0'");
  REQUIRE(error("--comp-add -E -1 f").find("option '--comp-add' is not supported") == 0);
  REQUIRE(error("--nonsense f") == "unrecognized option '--nonsense'");
  REQUIRE(error("-qc 1 f") == "unrecognized option '-q'");
  std::string many;
  for (int i = 1; i <= 33; i++) many += "-E " + std::to_string(i) + "M ";
  REQUIRE(error(many + "f") == "more than 32 components");
}

TEST_CASE("sizes are read as lfs reads them") {
  uint64_t bytes = 0;
  REQUIRE((parseBytes("4M", bytes) && bytes == 4 * kMiB));
  REQUIRE((parseBytes("4MiB", bytes) && bytes == 4 * kMiB));
  REQUIRE((parseBytes("1.5g", bytes) && bytes == 1536 * kMiB));
  REQUIRE((parseBytes("0x10000", bytes) && bytes == 65536));
  REQUIRE((parseBytes("15E", bytes) && bytes == uint64_t{15} << 60));
  REQUIRE((parseStripeSize("64", bytes) && bytes == 64 * kKiB));
  REQUIRE((parseStripeSize("4096", bytes) && bytes == 4096));
  for (const char* bad : {"", "x", "-1", "1Z", "1M1", "1Mx", "16E", "99999999999999999999", " 1",
                          "1.", "1.x", "1.5e2", "."})
    REQUIRE_FALSE(parseBytes(bad, bytes));
}

TEST_CASE("one value is asked of the path itself, everything of what a directory holds") {
  auto all = getstripe("d");
  REQUIRE(all.selection.fields == kFieldsDefault);
  REQUIRE(all.depthMax == 1);
  REQUIRE(all.selection.showPath);
  auto one = getstripe("-c d");
  REQUIRE(one.selection.fields == kFieldStripeCount);
  REQUIRE(one.depthMax == 0);
  REQUIRE_FALSE(one.selection.showPath);
  auto recursive = getstripe("-r -S d");
  REQUIRE(recursive.depthMax == -1);
  REQUIRE(recursive.selection.showPath);
  REQUIRE(getstripe("-d d").depthMax == 0);
  REQUIRE(getstripe("-q d").selection.fields == kFieldObjects);
  REQUIRE(getstripe("-v -c d").selection.fields == kFieldsDefault);
  REQUIRE(getstripe("-m d").mdtIndex);
}

TEST_CASE("a value attached to a component option chooses components, none asks for the field") {
  auto id = getstripe("-I2 f");
  REQUIRE(id.selection.componentId == 2u);
  REQUIRE(id.selection.fields == kFieldsDefault);
  REQUIRE(getstripe("-I 2").selection.fields == kFieldComponentId);
  REQUIRE(getstripe("-I 2").paths == std::vector<std::string>{"2"});
  REQUIRE(getstripe("--component-end=+64M f").selection.componentEnd->sign == '+');
  REQUIRE(getstripe("-E-64M f").selection.componentEnd->bytes == 64 * kMiB);
  REQUIRE(getstripe("-Eeof f").selection.componentEnd->bytes == kExtentEof);
  REQUIRE(getstripe("--component-flags=^init f").selection.initialized == false);
  REQUIRE(getstripe("--component-flags=stale f").error.find("bad component flags 'stale'") == 0);
  REQUIRE(getstripe("-I0 f").error == "bad component id '0'");
}

TEST_CASE("an OST is named by index or by Lustre's name") {
  REQUIRE(getstripe("-O 3 f").selection.ost == 3u);
  REQUIRE(getstripe("-O trainfs-OST001f_UUID f").selection.ost == 31u);
  REQUIRE(getstripe("-O OST0002 f").selection.ost == 2u);
  for (const char* bad : {"x", "-1", "65536", "trainfs-OST", "OST00zz"})
    REQUIRE(getstripe(std::string("-O ") + bad + " f").error.find("unknown OST") == 0);
  REQUIRE(getstripe("-c").error == "no filename|pathname");
  REQUIRE(getstripe("-Z f").error == "unrecognized option '-Z'");
}

TEST_CASE("mounts of trainfs are found in mountinfo, with their servers") {
  auto mounts = parseMountinfo(
      "22 1 0:20 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
      "40 22 0:50 / /mnt/trainfs rw,nosuid - fuse.trainfs a,b:7000,[::1]:7001:/trainfs rw\n"
      "41 22 0:51 / /mnt/with\\040space rw shared:9 master:2 - trainfs 10.0.0.1:/fs2 rw\n"
      "42 22 0:52 / /mnt/odd rw - fuse.trainfs trainfs rw\n"
      "43 22 0:53 / /mnt/trainfs/deep rw - fuse.trainfs c:/fs3 rw\n"
      "44 22 0:54 / /mnt/sshfs rw - fuse.sshfs host:/ rw\n"
      "nonsense\n");
  REQUIRE(mounts.size() == 4);
  REQUIRE(mounts[0].point == "/mnt/trainfs");
  REQUIRE(mounts[0].fsname == "trainfs");
  REQUIRE(mounts[0].servers.size() == 3);
  REQUIRE(mounts[0].servers[0].host == "a");
  REQUIRE(mounts[0].servers[0].port == 7171);
  REQUIRE(mounts[0].servers[1].port == 7000);
  REQUIRE(mounts[0].servers[2].host == "::1");
  REQUIRE(mounts[1].point == "/mnt/with space");
  REQUIRE(mounts[2].fsname == "");
  REQUIRE(mounts[2].servers.empty());

  auto point = [&](const char* path) {
    const Mount* mount = mountOf(mounts, path);
    return mount == nullptr ? "" : mount->point;
  };
  REQUIRE(point("/mnt/trainfs") == "/mnt/trainfs");
  REQUIRE(point("/mnt/trainfs/") == "/mnt/trainfs");
  REQUIRE(point("/mnt/trainfs/x/../y") == "/mnt/trainfs");
  REQUIRE(point("/mnt/trainfs/deep/x") == "/mnt/trainfs/deep");
  REQUIRE(point("/mnt/trainfs/deeper") == "/mnt/trainfs");
  REQUIRE(point("/mnt/trainfs2") == "");
  REQUIRE(point("/etc/passwd") == "");
}
