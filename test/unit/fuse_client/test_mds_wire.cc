// Lists in an MDS's answers, at their limits and one beyond.
#include <capnp/message.h>
#include <kj/exception.h>
#include <linux/limits.h>

#include <catch2/catch_test_macros.hpp>

#include "fuse_client/mds_wire.h"
#include "trainfs/target.h"

using namespace trainfs;
using namespace trainfs::client;

TEST_CASE("a page of a directory has no more entries than were asked for") {
  capnp::MallocMessageBuilder builder;
  auto entries = builder.initRoot<rpc::Session::ReaddirResults>().initEntries(3);
  for (auto entry : entries) entry.initNode().initAttributes().setInode(5);
  CHECK(decodePage(entries.asReader(), true, 3).entries.size() == 3);
  CHECK_THROWS_AS(decodePage(entries.asReader(), true, 2), kj::Exception);
}

TEST_CASE("a page of an inode's names has a limit") {
  for (size_t count : {kNamesPerPage, kNamesPerPage + 1}) {
    capnp::MallocMessageBuilder builder;
    auto results = builder.initRoot<rpc::Session::NamesResults>();
    results.initNames(count);
    if (count == kNamesPerPage)
      CHECK(decodeNames(results.asReader()).names.size() == count);
    else
      CHECK_THROWS_AS(decodeNames(results.asReader()), kj::Exception);
  }
}

TEST_CASE("the names of attributes fit into the kernel's list") {
  for (size_t count : {XATTR_LIST_MAX / 2, XATTR_LIST_MAX / 2 + 1}) {
    capnp::MallocMessageBuilder builder;
    auto names = builder.initRoot<rpc::Session::ListxattrResults>().initNames(count);
    if (count == XATTR_LIST_MAX / 2)
      CHECK(decodeXattrNames(names.asReader()).size() == count);
    else
      CHECK_THROWS_AS(decodeXattrNames(names.asReader()), kj::Exception);
  }
}

TEST_CASE("a cluster map has as many OSTs as there are indices, and each a few ports") {
  for (size_t osts : {kOstIndexMax + 1, kOstIndexMax + 2})
    for (size_t ports : {kOstPortsMax, kOstPortsMax + 1}) {
      capnp::MallocMessageBuilder builder;
      auto map = builder.initRoot<rpc::ClusterMap>();
      map.initOsts(osts)[0].initPorts(ports);
      if (osts == kOstIndexMax + 1 && ports == kOstPortsMax)
        CHECK(decodeMap(map.asReader()).osts.size() == osts);
      else
        CHECK_THROWS_AS(decodeMap(map.asReader()), kj::Exception);
    }
}
