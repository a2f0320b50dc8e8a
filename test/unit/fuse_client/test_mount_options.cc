// The command line of trainfs-client.
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include <sys/mount.h>

#include "fuse_client/mount_options.h"
#include "fuse_client/remount.h"

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
  for (std::string source :
       {"", "mds1", "mds1:7171", ":/trainfs", "mds1:/", "mds1://a", "mds1:/a/../b", "mds1:/a/.",
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
  CHECK(options.locking == Locking::kCluster);
  REQUIRE(parseOptionList("localflock", false, options) == "");
  CHECK(options.locking == Locking::kLocal);
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

TEST_CASE("a source may name a directory below the file system", "[client]") {
  MountOptions options;
  REQUIRE(parseSource("mds1:/data/one//two:/three/", options) == "");
  CHECK(options.fsname == "data");
  CHECK(options.directory == std::vector<std::string>{"one", "two:", "three"});
}

TEST_CASE("the list of the options makes the same options", "[client]") {
  for (std::string list : {"localflock", "noflock", "flock", "",
                           "soft,soft_timeout=7,uring=on,threads=9,log_level=debug",
                           "noallow_other,lanes=3,data_workers=4,readahead_kb=0,log_file=/tmp/x"}) {
    MountOptions options, again;
    REQUIRE(parseOptionList(list, false, options) == "");
    REQUIRE(parseOptionList(optionList(options), false, again) == "");
    INFO(optionList(options));
    CHECK(optionList(again) == optionList(options));
    CHECK(checkRemount(options, again) == "");
  }
}

TEST_CASE("remount changes log level and read-ahead, and names what it cannot change", "[client]") {
  auto remounted = [](const std::string& list) {
    MountOptions present, wanted;
    REQUIRE(parseOptionList(list, false, wanted) == "");
    return checkRemount(present, wanted);
  };
  CHECK(remounted("remount,log_level=debug,readahead_kb=128,ro,nosuid") == "");
  CHECK(remounted("remount,rw,relatime,user_id=0,group_id=0,default_permissions,allow_other") ==
        "");
  CHECK(remounted("threads=3").find("option threads ") == 0);
  CHECK(remounted("soft").find("option hard or soft ") == 0);
  CHECK(remounted("noflock").find("option flock, localflock or noflock ") == 0);
  CHECK(remounted("uring=on").find("option uring ") == 0);
  CHECK(remounted("context=\"a:b,c\"").find("context=") != std::string::npos);
}

TEST_CASE("flags of a mount come from its line, and options change them one by one", "[client]") {
  MountLine line;
  REQUIRE(
      parseMountLine("36 25 0:45 / /mnt/a\\040b rw,nosuid,noatime shared:1 - fuse.trainfs "
                     "mds1:/trainfs ro,user_id=0",
                     line));
  CHECK(line.mountPoint == "/mnt/a b");
  CHECK(line.source == "mds1:/trainfs");
  CHECK(mountFlags(line) == (MS_RDONLY | MS_NOSUID | MS_NOATIME));
  MountOptions options;
  REQUIRE(parseOptionList("suid,noexec,rw,sync,async", false, options) == "");
  CHECK(withOptions(mountFlags(line), options) == (MS_NOATIME | MS_NOEXEC));
  CHECK_FALSE(parseMountLine("36 25 0:45 / /mnt", line));
}

TEST_CASE("an endpoint for Prometheus has a host and a port, and stays what it is in a remount",
          "[client]") {
  MountOptions options, wanted;
  REQUIRE(parseOptionList("metrics_listen=[::1]:9100", false, options) == "");
  CHECK(options.metricsListen == "[::1]:9100");
  REQUIRE(parseOptionList(optionList(options), false, wanted) == "");
  CHECK(checkRemount(options, wanted).empty());
  for (std::string value : {"", "host", "9100", "host:", "host:x", ":9100"}) {
    INFO(value);
    MountOptions other;
    CHECK(parseOptionList("metrics_listen=" + value, false, other).find("metrics_listen") !=
          std::string::npos);
  }
  wanted.metricsListen = "localhost:1";
  CHECK(checkRemount(options, wanted).find("metrics_listen") != std::string::npos);
}
