// The command line of trainfs-client.
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "fuse_client/mount_options.h"

using namespace trainfs::client;

namespace {

std::optional<MountUsage> parse(std::vector<const char*> arguments, MountOptions& options) {
  arguments.insert(arguments.begin(), "trainfs-client");
  return parseMountOptions(static_cast<int>(arguments.size()), arguments.data(), options);
}

}  // namespace

TEST_CASE("a source names hosts, ports and the file system", "[client]") {
  MountOptions options;
  REQUIRE(parseSource("mds1,mds2:7172,[fe80::1]:9:/data", options) == "");
  REQUIRE(options.fsname == "data");
  REQUIRE(options.servers.size() == 3);
  CHECK(options.servers[0].host == "mds1");
  CHECK(options.servers[0].port == trainfs::kDefaultMdsPort);
  CHECK(options.servers[1].port == 7172);
  CHECK(options.servers[2].host == "fe80::1");
  CHECK(options.servers[2].port == 9);
}

TEST_CASE("a source that is none is refused with its text", "[client]") {
  for (std::string source : {"", "mds1", "mds1:7171", ":/trainfs", "mds1:/", "mds1:/a/b",
                             "mds1,:/trainfs", "mds1:0:/trainfs", "mds1:99999:/trainfs"}) {
    MountOptions options;
    INFO(source);
    auto wrong = parseSource(source, options);
    CHECK(!wrong.empty());
    CHECK(wrong.find("'" + source + "'") != std::string::npos);
  }
}

TEST_CASE("mount options of the kernel are passed on, of mount(8) dropped, of this program taken",
          "[client]") {
  MountOptions options;
  REQUIRE(
      parseOptionList(
          "rw,nosuid,_netdev,x-systemd.automount,relatime,soft,soft_timeout=7,uring=auto,lanes=2,"
          "context=\"a:b,c\"",
          false, options) == "");
  CHECK(options.kernelOptions == std::vector<std::string>{"nosuid", "context=\"a:b,c\""});
  CHECK(options.soft);
  CHECK(options.softTimeout.count() == 7);
  CHECK(options.uring == UringMode::kAuto);
  CHECK(options.lanes == 2);
  CHECK(!options.readOnly);
}

TEST_CASE("a wrong mount option is named", "[client]") {
  MountOptions options;
  CHECK(parseOptionList("nonsense", false, options).find("'nonsense'") != std::string::npos);
  CHECK(parseOptionList("nonsense", true, options) == "");  // sloppy
  CHECK(parseOptionList("lanes=0", false, options).find("lanes") != std::string::npos);
  CHECK(parseOptionList("lanes=2x", true, options).find("lanes") != std::string::npos);
  CHECK(parseOptionList("uring=maybe", false, options).find("uring") != std::string::npos);
}

TEST_CASE("flags of mount(8) may be joined, and come anywhere", "[client]") {
  MountOptions options;
  REQUIRE(!parse({"mds1:/trainfs", "/mnt", "-fv", "-o", "ro", "-onoatime"}, options));
  CHECK(options.foreground);
  CHECK(options.verbose);
  CHECK(options.readOnly);
  CHECK(options.kernelOptions == std::vector<std::string>{"noatime"});
  CHECK(options.mountPoint == "/mnt");
}

TEST_CASE("a command line without a source and a place, or with something else, is refused",
          "[client]") {
  MountOptions options;
  CHECK(parse({}, options)->status == 2);
  CHECK(parse({"mds1:/trainfs"}, options)->status == 2);
  CHECK(parse({"mds1:/trainfs", "/mnt", "more"}, options)->status == 2);
  CHECK(parse({"--nonsense", "mds1:/trainfs", "/mnt"}, options)->text.find("--nonsense") !=
        std::string::npos);
  CHECK(parse({"--help"}, options)->status == 0);
}
