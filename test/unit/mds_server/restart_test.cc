#include <catch2/catch_test_macros.hpp>

#include "fixture.h"

using namespace trainfs;
using namespace trainfs::mds;
using namespace trainfs::mds::test;

TEST_CASE("after a restart a file stays for clients that have not come back yet") {
  Fixture fixture;
  OstClient ost(fixture, 0);
  REQUIRE(ost.registerOst() == 0);
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  b.open();
  auto held = a.create("held"), lost = a.create("lost");
  auto heldObjects = objectsOf(fixture, held), lostObjects = objectsOf(fixture, lost);
  REQUIRE(a.openFile(held) == 0);
  fixture.restart();
  REQUIRE(ost.registerOst() == 0);
  b.resume({});
  REQUIRE(b.error == 0);
  CHECK(b.unlink("held") == 0);
  CHECK(b.unlink("lost") == 0);

  a.resume({{held, false}});
  REQUIRE(a.error == 0);
  CHECK(a.getattr(held).getError() == 0);
  CHECK(a.getattr(lost).getError() == ESTALE);
  fixture.until([&] { return ost.notes->destroyed == lostObjects; });
  a.release(held);
  fixture.until([&] { return ost.notes->destroyed.size() == 2; });
  CHECK(ost.notes->destroyed.back() == heldObjects.front());
}

TEST_CASE("after a restart a client that never comes back loses its orphans") {
  Fixture fixture;
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  b.open();
  auto file = a.create("f");
  fixture.restart();
  b.resume({});
  CHECK(b.unlink("f") == 0);
  CHECK(loadNode(*fixture.store.snapshot(), file).ok());
  for (int second = 0; second < 62; ++second) {
    b.renew();
    fixture.advance(1 * kj::SECONDS);
  }
  fixture.until([&] { return !loadNode(*fixture.store.snapshot(), file).ok(); });
  CHECK(b.renew());
}

TEST_CASE("after a restart a newcomer waits for the term of a client that was alone") {
  Fixture fixture;
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  fixture.restart();
  auto opening = b.opening();
  fixture.advance(9 * kj::SECONDS);
  CHECK(!opening.poll(fixture.io.waitScope));
  fixture.advance(2 * kj::SECONDS);
  opening.wait(fixture.io.waitScope);
  CHECK(b.mayCache);
  a.resume({});
  CHECK(a.error == ESTALE);
}

TEST_CASE("a request is executed once over a restart") {
  Fixture fixture;
  Client a(fixture, "a");
  a.open();
  auto fill = [](rpc::Operation::Builder op) {
    auto unlink = op.initUnlink();
    unlink.setParent(kRootInode.value);
    unlink.setName("f");
  };
  a.create("f");
  REQUIRE(a.executeAs(3, 9, fill).getReply().getError() == 0);
  fixture.restart();
  a.resume({});
  CHECK(a.executeAs(3, 9, fill).getReply().getError() == 0);
  CHECK(a.executeAs(3, 10, fill).getReply().getError() == ENOENT);
}

TEST_CASE("map versions and inode numbers go on after a restart") {
  Fixture fixture;
  Client a(fixture, "a");
  a.open();
  auto version = a.mapVersion;
  auto first = a.create("first");
  fixture.restart();
  a.resume({});
  CHECK(a.mapVersion > version);
  CHECK(a.create("second").value > first.value);
}

TEST_CASE("files that were being written when the server died are still asked about") {
  Fixture fixture;
  OstClient ost(fixture, 0);
  REQUIRE(ost.registerOst() == 0);
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  b.open();
  auto file = a.create("f", true);
  ost.notes->objects[objectsOf(fixture, file).front()] = 99;
  fixture.restart();
  REQUIRE(ost.registerOst() == 0);
  b.resume({});
  CHECK(b.getattr(file).getNode().getAttributes().getSizeBytes() == 99);

  // a comes back without it: nobody will report, so the MDS takes the size over.
  a.resume({});
  fixture.until(
      [&] { return loadNode(*fixture.store.snapshot(), file)->attributes.sizeBytes == 99; });
}
