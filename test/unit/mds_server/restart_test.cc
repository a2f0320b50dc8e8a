#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>

#include "fixture.h"
#include "mds/state_machine.h"
#include "unit/mds/store_check.h"

using namespace trainfs;
using namespace trainfs::mds;
using namespace trainfs::mds::test;

TEST_CASE("after a restart nothing is changed until all clients have come back with their files") {
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
  auto unlinking = b.unlinking("held");
  CHECK(!unlinking.poll(fixture.io.waitScope));
  CHECK(b.list() == std::vector<std::string>{"held", "lost"});

  a.resume({{held, false}});
  REQUIRE(a.error == 0);
  CHECK(unlinking.wait(fixture.io.waitScope) == 0);
  CHECK(b.unlink("lost") == 0);
  CHECK(a.getattr(held).getError() == 0);
  CHECK(a.getattr(lost).getError() == ESTALE);
  fixture.until([&] { return ost.notes->destroyed == lostObjects; });
  a.release(held);
  fixture.until([&] { return ost.notes->destroyed.size() == 2; });
  CHECK(ost.notes->destroyed.back() == heldObjects.front());
}

TEST_CASE("after a restart a change waits a term for a client that never comes back") {
  Fixture fixture;
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  b.open();
  auto file = a.create("f");
  fixture.restart();
  b.resume({});
  auto unlinking = b.unlinking("f");
  for (int second = 0; second < 9; ++second) {
    b.renew();
    fixture.advance(1 * kj::SECONDS);
  }
  CHECK(!unlinking.poll(fixture.io.waitScope));
  CHECK(loadNode(*fixture.store.snapshot(), file).ok());
  fixture.advance(2 * kj::SECONDS);
  CHECK(unlinking.wait(fixture.io.waitScope) == 0);
  fixture.until([&] { return !loadNode(*fixture.store.snapshot(), file).ok(); });
  CHECK(b.renew());
}

TEST_CASE("a session with very many orphans ends in steps, over a restart, and never comes back") {
  constexpr uint64_t kOrphans = 50'000;
  Fixture fixture;
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  b.open();
  a.disconnect();
  fixture.stop();
  auto first = nextInode(*fixture.store.snapshot());
  {
    auto txn = fixture.store.begin();
    for (uint64_t i = 0; i < kOrphans; ++i) {
      InodeId inode{first.value + i};
      CreateOp create{.parent = kRootInode, .name = "f", .mode = S_IFIFO | 0600, .newInode = inode};
      REQUIRE(apply({.now = {5, 0}, .op = create}, *txn).error == 0);
      UnlinkOp unlink{.parent = kRootInode, .name = "f", .holders = {{inode, {a.id}}}};
      REQUIRE(apply({.now = {6, 0}, .op = unlink}, *txn).error == 0);
    }
    txn->commit();
  }
  fixture.start();
  b.resume({});
  REQUIRE(b.error == 0);
  auto left = [&] { return orphansOf(*fixture.store.snapshot(), {a.id}).size(); };
  for (int second = 0; sessions(*fixture.store.snapshot()).size() == 2; ++second) {
    REQUIRE(second < 70);
    CHECK(left() == kOrphans);
    REQUIRE(b.renew());
    fixture.advance(1 * kj::SECONDS);
  }
  CHECK(left() > kOrphans / 2);
  b.create("goes on beside it");

  fixture.restart();
  b.resume({});
  a.resume({});
  CHECK(a.error == ESTALE);
  fixture.until([&] { return left() == 0; });
  CHECK(!loadNode(*fixture.store.snapshot(), first).ok());
  CHECK(problemsOf(*fixture.store.snapshot()) == std::vector<std::string>{});
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

TEST_CASE("a clock that was set back over a restart does not make newer changes look older") {
  Fixture fixture;
  Client a(fixture, "a");
  a.open();
  Time ahead{4'000'000'000, 7};
  {
    auto txn = fixture.store.begin();
    setApplied(*txn, appliedIndex(*txn), ahead);
    txn->commit();
  }
  fixture.restart();
  a.resume({});
  auto file = a.create("f");
  CHECK(loadNode(*fixture.store.snapshot(), file)->attributes.ctime == ahead);
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
  SharedFile shared(fixture);
  auto& [ost, a, b, file] = shared;
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
