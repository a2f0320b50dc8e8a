#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "fixture.h"

using namespace trainfs;
using namespace trainfs::mds;
using namespace trainfs::mds::test;

namespace {

void fillCreate(rpc::Operation::Builder op, const char* name) {
  auto create = op.initCreate();
  create.setParent(kRootInode.value);
  create.setName(name);
  create.setMode(S_IFREG | 0600);
  create.setExclusive(true);
}

}  // namespace

TEST_CASE("create, look up, open, report, list, and remove over a connection") {
  Fixture fixture;
  OstClient ost(fixture, 3);
  REQUIRE(ost.registerOst() == 0);
  Client client(fixture, "a");
  client.open();
  auto file = client.create("file", true);
  CHECK(client.report(file, 12345, false) == 0);
  client.release(file);
  auto found = client.lookup("file");
  REQUIRE(found.getError() == 0);
  auto attributes = found.getNode().getAttributes();
  CHECK(attributes.getInode() == file.value);
  CHECK(attributes.getSizeBytes() == 12345);
  CHECK(attributes.getUid() == 1000);
  CHECK(found.getNode().getLayout().size() > 0);
  CHECK(client.openFile(file) == 0);
  CHECK(client.list() == std::vector<std::string>{"file"});
  client.release(file);
  CHECK(client.unlink("file") == 0);
  CHECK(client.lookup("file").getError() == ENOENT);
  CHECK(client.openFile(file) == ESTALE);
}

TEST_CASE("a request resent over a new connection is executed once") {
  Fixture fixture;
  Client client(fixture, "a");
  client.open();
  auto fill = [](rpc::Operation::Builder op) { fillCreate(op, "once"); };
  auto first = client.executeAs(0, 1, fill);
  REQUIRE(first.getReply().getError() == 0);
  client.disconnect();
  client.resume({});
  auto again = client.executeAs(0, 1, fill);
  CHECK(again.getReply().getError() == 0);
  CHECK(again.getReply().getNode().getAttributes().getInode() ==
        first.getReply().getNode().getAttributes().getInode());
  auto next = client.executeAs(0, 2, fill);
  CHECK(next.getReply().getError() == EEXIST);
}

TEST_CASE(
    "a file without a name is there when the create is sent again after its answer was lost") {
  Fixture fixture;
  Client client(fixture, "a");
  client.open();
  auto fill = [](rpc::Operation::Builder op) {
    fillCreate(op, "");
    op.getCreate().setWriting(true);
    op.getCreate().setUnnamed(true);
  };
  auto made = client.executeAs(0, 1, fill).getReply().getNode().getAttributes().getInode();
  client.resume({});
  auto again = client.executeAs(0, 1, fill);
  REQUIRE(again.getReply().getError() == 0);
  CHECK(again.getReply().getNode().getAttributes().getInode() == made);
  CHECK(again.getReply().getNode().getAttributes().getLinks() == 0);
  CHECK(client.list().empty());

  fixture.restart();
  client.resume({{{made}, true}});
  CHECK(client.getattr({made}).getError() == 0);
  client.release({made});
  CHECK(client.getattr({made}).getError() == ESTALE);
}

TEST_CASE("a file without a name that a resumption does not list goes, once its maker knew of it") {
  Fixture fixture;
  Client client(fixture, "a");
  client.open();
  auto made = client.executeAs(0, 1, [](rpc::Operation::Builder op) {
    fillCreate(op, "");
    op.getCreate().setWriting(true);
    op.getCreate().setUnnamed(true);
  });
  InodeId inode{made.getReply().getNode().getAttributes().getInode()};
  client.executeAs(0, 2, [](rpc::Operation::Builder op) { fillCreate(op, "next"); });
  client.resume({});
  CHECK(client.getattr(inode).getError() == ESTALE);
}

TEST_CASE("a release that a lost connection brings late does not undo an open of the next one") {
  Fixture fixture;
  Client client(fixture, "a");
  client.open();
  auto file = client.create("file");
  CHECK(client.openFile(file) == 0);
  auto lostConnection = std::move(client.connection);
  auto lost = KJ_ASSERT_NONNULL(client.session);
  client.resume({});
  CHECK(client.openFile(file) == 0);
  auto release = lost.releaseRequest();
  release.setInode(file.value);
  CHECK_THROWS_AS(release.send().wait(fixture.io.waitScope), kj::Exception);
  CHECK(client.unlink("file") == 0);
  CHECK(client.getattr(file).getError() == 0);
  client.release(file);
}

TEST_CASE("a request resent while its first copy is still in the log is executed once") {
  Fixture fixture;
  Client client(fixture, "a");
  client.open();
  auto send = [&] {
    auto request = KJ_ASSERT_NONNULL(client.session).executeRequest();
    request.setSlot(0);
    request.setSequence(1);
    fillCreate(request.initOp(), "once");
    return request.send();
  };
  auto first = send(), second = send();
  CHECK(first.wait(fixture.io.waitScope).getReply().getError() == 0);
  CHECK(second.wait(fixture.io.waitScope).getReply().getError() == 0);
}

TEST_CASE("an old sequence ends the session") {
  Fixture fixture;
  Client client(fixture, "a");
  client.open();
  client.executeAs(0, 5, [](rpc::Operation::Builder op) { fillCreate(op, "x"); });
  CHECK(kj::runCatchingExceptions([&] {
          client.executeAs(0, 4, [](rpc::Operation::Builder op) { fillCreate(op, "y"); });
        }) != nullptr);
  fixture.until([&] { return fixture.server->core().sessions.size() == 0; });
}

TEST_CASE("what another client has open stays when its name goes, until it is released") {
  Fixture fixture;
  OstClient ost(fixture, 0);
  REQUIRE(ost.registerOst() == 0);
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  b.open();
  auto file = a.create("f");
  auto objects = objectsOf(fixture, file);
  REQUIRE(objects.size() == 1);
  REQUIRE(b.openFile(file) == 0);
  CHECK(a.unlink("f") == 0);
  CHECK(b.getattr(file).getNode().getAttributes().getLinks() == 0);
  CHECK(a.openFile(file) == ESTALE);
  CHECK(ost.notes->destroyed.empty());
  b.release(file);
  CHECK(b.getattr(file).getError() == ESTALE);
  fixture.until([&] { return ost.notes->destroyed == objects; });
}

TEST_CASE("an open that arrives while its file is being unlinked sees one or the other") {
  Fixture fixture;
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  b.open();
  auto file = a.create("f");
  auto unlink = KJ_ASSERT_NONNULL(a.session).executeRequest();
  unlink.setSlot(1);
  unlink.setSequence(1);
  auto op = unlink.initOp().initUnlink();
  op.setParent(kRootInode.value);
  op.setName("f");
  auto open = KJ_ASSERT_NONNULL(b.session).openRequest();
  open.setInode(file.value);
  auto unlinked = unlink.send();
  auto opened = open.send();
  CHECK(unlinked.wait(fixture.io.waitScope).getReply().getError() == 0);
  auto error = opened.wait(fixture.io.waitScope).getError();
  if (error == 0)
    CHECK(b.getattr(file).getError() == 0);  // it came first, so it keeps the file
  else
    CHECK(error == ESTALE);
}

TEST_CASE("a client keeps what it has open itself by saying so") {
  Fixture fixture;
  Client a(fixture, "a");
  a.open();
  auto file = a.create("f");
  CHECK(a.unlink("f", {file}) == 0);
  CHECK(a.getattr(file).getError() == 0);
  a.release(file);
  CHECK(a.getattr(file).getError() == ESTALE);
}

TEST_CASE("a rename over a file that is open elsewhere keeps it") {
  Fixture fixture;
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  b.open();
  auto source = a.create("source");
  auto target = a.create("target");
  REQUIRE(b.openFile(target) == 0);
  auto reply = a.execute([&](rpc::Operation::Builder op) {
    auto rename = op.initRename();
    rename.setParent(kRootInode.value);
    rename.setName("source");
    rename.setNewParent(kRootInode.value);
    rename.setNewName("target");
  });
  CHECK(reply.getReply().getError() == 0);
  CHECK(a.lookup("target").getNode().getAttributes().getInode() == source.value);
  CHECK(b.getattr(target).getNode().getAttributes().getLinks() == 0);
}

TEST_CASE("a directory that is open somewhere stays when it is removed") {
  Fixture fixture;
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  b.open();
  auto made = a.execute([&](rpc::Operation::Builder op) {
    fillCreate(op, "dir");
    op.getCreate().setMode(S_IFDIR | 0755);
  });
  InodeId dir{made.getReply().getNode().getAttributes().getInode()};
  REQUIRE(b.openFile(dir) == 0);
  auto removed = a.execute([&](rpc::Operation::Builder op) {
    auto rmdir = op.initRmdir();
    rmdir.setParent(kRootInode.value);
    rmdir.setName("dir");
  });
  CHECK(removed.getReply().getError() == 0);
  CHECK(b.getattr(dir).getNode().getAttributes().getLinks() == 0);
  b.release(dir);
  CHECK(b.getattr(dir).getError() == ESTALE);
}

TEST_CASE("names and values that are too long are refused") {
  Fixture fixture;
  Client a(fixture, "a");
  a.open();
  std::string name(kNameBytesMax + 1, 'n');
  auto create = a.execute([&](rpc::Operation::Builder op) { fillCreate(op, name.c_str()); });
  CHECK(create.getReply().getError() == ENAMETOOLONG);
  CHECK(a.lookup(name).getError() == ENAMETOOLONG);
  auto file = a.create("f");
  auto set = a.execute([&](rpc::Operation::Builder op) {
    auto xattr = op.initSetxattr();
    xattr.setInode(file.value);
    xattr.setName("user.x");
    xattr.initValue(kXattrValueBytesMax + 1);
  });
  CHECK(set.getReply().getError() == E2BIG);
}

TEST_CASE("a directory's layout is set, inherited and removed as an attribute") {
  Fixture fixture;
  OstClient ost0(fixture, 0), ost1(fixture, 1);
  REQUIRE(ost0.registerOst() == 0);
  REQUIRE(ost1.registerOst() == 0);
  Client a(fixture, "a");
  a.open();
  auto setLayout = [&](const std::string& text) {
    return a
        .execute([&](rpc::Operation::Builder op) {
          auto xattr = op.initSetxattr();
          xattr.setInode(kRootInode.value);
          xattr.setName("trainfs.layout");
          xattr.setValue(bytes(text));
        })
        .getReply()
        .getError();
  };
  CHECK(setLayout("stripe_size=banana") == EINVAL);
  CHECK(setLayout("start=0 end=eof stripe_size=1M stripe_count=2") == 0);
  CHECK(objectsOf(fixture, a.create("two")).size() == 2);
  auto removed = a.execute([&](rpc::Operation::Builder op) {
    auto xattr = op.initRemovexattr();
    xattr.setInode(kRootInode.value);
    xattr.setName("trainfs.layout");
  });
  CHECK(removed.getReply().getError() == 0);
  CHECK(objectsOf(fixture, a.create("one")).size() == 1);
}

TEST_CASE("an exclusive layout whose answer was lost is not refused when it is sent again") {
  Fixture fixture;
  Client a(fixture, "a");
  a.open();
  auto setLayout = [&](uint64_t sequence, bool create, bool replace) {
    return a
        .executeAs(3, sequence,
                   [&](rpc::Operation::Builder op) {
                     auto xattr = op.initSetxattr();
                     xattr.setInode(kRootInode.value);
                     xattr.setName("trainfs.layout");
                     xattr.setValue(bytes("start=0 end=eof stripe_size=1M stripe_count=1"));
                     xattr.setCreate(create);
                     xattr.setReplace(replace);
                   })
        .getReply()
        .getError();
  };
  CHECK(setLayout(1, false, true) == ENODATA);
  CHECK(setLayout(2, true, false) == 0);
  CHECK(setLayout(2, true, false) == 0);
  CHECK(setLayout(3, true, false) == EEXIST);
  CHECK(setLayout(4, false, true) == 0);
}

TEST_CASE("a change of a file that is gone by now is answered as it was when it is sent again") {
  Fixture fixture;
  OstClient ost(fixture, 0);
  REQUIRE(ost.registerOst() == 0);
  Client a(fixture, "a");
  a.open();
  auto file = a.create("f");
  auto setLayout = [&] {
    return a
        .executeAs(3, 1000,
                   [&](rpc::Operation::Builder op) {
                     auto xattr = op.initSetxattr();
                     xattr.setInode(file.value);
                     xattr.setName("trainfs.layout");
                     xattr.setValue(bytes("start=0 end=eof stripe_size=1M stripe_count=1"));
                   })
        .getReply()
        .getError();
  };
  CHECK(setLayout() == 0);
  CHECK(a.unlink("f") == 0);
  CHECK(setLayout() == 0);
}

namespace {

auto instantiate(Client& client, InodeId file) {
  auto request = KJ_ASSERT_NONNULL(client.session).instantiateRequest();
  request.setInode(file.value);
  return request.send();
}

}  // namespace

TEST_CASE("a file made without OSTs waits for one before its first write, and gets its chains") {
  Fixture fixture;
  Client a(fixture, "a");
  a.open();
  auto file = a.create("f");
  CHECK(objectsOf(fixture, file).empty());
  auto early = instantiate(a, file);
  fixture.settle();
  CHECK_FALSE(early.poll(fixture.io.waitScope));
  OstClient ost(fixture, 0);
  REQUIRE(ost.registerOst() == 0);
  CHECK(early.wait(fixture.io.waitScope).getError() == 0);
  CHECK(instantiate(a, file).wait(fixture.io.waitScope).getError() == 0);
  CHECK(objectsOf(fixture, file).size() == 1);
}

TEST_CASE("after a restart placement waits for the OSTs that were there, but not for ever") {
  // kill -9 of the MDS in a copy: writes were told ENOSPC while no OST had registered again.
  Fixture fixture;
  Client a(fixture, "a");
  a.open();
  OstClient first(fixture, 0), second(fixture, 1);
  REQUIRE(first.registerOst() == 0);
  REQUIRE(second.registerOst() == 0);
  bool comesBack = GENERATE(true, false);
  CAPTURE(comesBack);

  fixture.restart();
  a.resume({});
  REQUIRE(first.registerOst() == 0);
  auto file = a.create("f");
  CHECK(objectsOf(fixture, file).empty());
  auto waiting = instantiate(a, file);
  fixture.settle();
  CHECK_FALSE(waiting.poll(fixture.io.waitScope));
  if (comesBack) {
    REQUIRE(second.registerOst() == 0);
  } else {
    for (int second = 0; second < 15; ++second) {
      first.renew();
      a.renew();
      fixture.advance(1 * kj::SECONDS);
    }
  }
  CHECK(waiting.wait(fixture.io.waitScope).getError() == 0);
  CHECK(objectsOf(fixture, file).size() == 1);
}
