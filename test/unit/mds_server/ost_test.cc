#include <catch2/catch_test_macros.hpp>

#include "fixture.h"

using namespace trainfs;
using namespace trainfs::mds;
using namespace trainfs::mds::test;

TEST_CASE("an index belongs to one target for good") {
  Fixture fixture;
  OstClient first(fixture, 2), other(fixture, 2);
  REQUIRE(first.registerOst("uuid-a") == 0);
  CHECK(other.registerOst("uuid-b") == EEXIST);
  CHECK(other.message.find("trainfs-OST0002") != std::string::npos);
  CHECK(other.registerOst("uuid-a") == 0);
}

TEST_CASE("a copy of a target is not taken while the other may still serve") {
  Fixture fixture;
  OstClient first(fixture, 3), copy(fixture, 3);
  CHECK(first.registerOst() == 0);
  copy.port = 9000;
  CHECK(copy.registerOst() == EBUSY);
  CHECK(copy.message.find("trainfs-OST0003 may still be served at 127.0.0.1:7183") == 0);
  first.renew();
  first.disconnect();
  CHECK(copy.registerOst() == EBUSY);
  // A server that died and is back at the same place waits for nothing.
  CHECK(first.registerOst() == 0);
  first.disconnect();
  fixture.restart();
  CHECK(copy.registerOst() == EBUSY);
  fixture.advance(fixture.options.ostTerm);
  CHECK(copy.registerOst() == 0);
  CHECK(first.registerOst() == EBUSY);
}

TEST_CASE("an older copy of a target is not taken") {
  Fixture fixture;
  OstClient ost(fixture, 3);
  ost.start = 11;
  REQUIRE(ost.registerOst() == 0);
  OstClient copy(fixture, 3);
  copy.acceptedStart = 11;
  copy.start = 21;

  ost.acceptedStart = 11;
  ost.start = 12;
  REQUIRE(ost.registerOst() == 0);
  ost.disconnect();
  for (int attempt = 0; attempt < 2; ++attempt) {
    CHECK(copy.registerOst() == ESTALE);
    CHECK(copy.message.find("trainfs-OST0003") == 0);
    CHECK(copy.message.find("this is an older copy") != std::string::npos);
    fixture.restart();
  }
  // The answer was lost: the OST does not know yet that this start was accepted.
  CHECK(ost.registerOst() == 0);
  ost.acceptedStart = 12;
  CHECK(ost.registerOst() == 0);

  // Nor is a copy taken from before the target was first served.
  OstClient fresh(fixture, 3);
  fresh.start = 31;
  CHECK(fresh.registerOst() == ESTALE);

  copy.olderCopy = true;
  CHECK(copy.registerOst() == 0);
  CHECK(ost.registerOst() == ESTALE);
}

TEST_CASE("a registration has to name a start") {
  Fixture fixture;
  OstClient ost(fixture, 3);
  ost.start = 0;
  CHECK(ost.registerOst() == EINVAL);
}

TEST_CASE("clients get a newer map when an OST comes and goes") {
  Fixture fixture;
  Client client(fixture, "a");
  client.open();
  OstClient ost(fixture, 0);
  REQUIRE(ost.registerOst() == 0);
  fixture.until([&] { return client.notes->mapVersion > client.mapVersion; });
  auto withOst = client.notes->mapVersion;
  ost.disconnect();
  fixture.until([&] { return client.notes->mapVersion > withOst; });
  CHECK(!fixture.server->core().osts.find(0)->active);
}

TEST_CASE("an OST whose renewals stop is away, though its connection stands") {
  Fixture fixture;
  OstClient ost(fixture, 0);
  REQUIRE(ost.registerOst() == 0);
  fixture.advance(9 * kj::SECONDS);
  CHECK(fixture.server->core().osts.find(0)->active);
  ost.renew();
  fixture.advance(9 * kj::SECONDS);
  CHECK(fixture.server->core().osts.find(0)->active);
  fixture.advance(2 * kj::SECONDS);
  CHECK(!fixture.server->core().osts.find(0)->active);
  CHECK(kj::runCatchingExceptions([&] { ost.renew(); }) != nullptr);
  CHECK(ost.registerOst() == 0);
}

TEST_CASE("space is the sum over the OSTs that serve") {
  Fixture fixture;
  OstClient ost0(fixture, 0), ost1(fixture, 1);
  REQUIRE(ost0.registerOst() == 0);
  REQUIRE(ost1.registerOst() == 0);
  Client client(fixture, "a");
  client.open();
  auto total = [&] {
    auto response =
        KJ_ASSERT_NONNULL(client.session).statfsRequest().send().wait(fixture.io.waitScope);
    return response.getStats().getTotalBytes();
  };
  CHECK(total() == 200 * kGiB);
  ost1.disconnect();
  CHECK(total() == 100 * kGiB);
}

TEST_CASE("the size of a file that another client writes is what its objects say") {
  Fixture fixture;
  SharedFile shared(fixture);
  auto& [ost, a, b, file] = shared;
  ost.notes->objects[objectsOf(fixture, file).front()] = 777;
  CHECK(b.getattr(file).getNode().getAttributes().getSizeBytes() == 777);
  CHECK(b.lookup("f").getNode().getAttributes().getSizeBytes() == 777);
  CHECK(a.getattr(file).getNode().getAttributes().getSizeBytes() == 0);
  CHECK(ost.notes->stats == 2);
  CHECK(a.report(file, 1000, false) == 0);
  CHECK(b.getattr(file).getNode().getAttributes().getSizeBytes() == 1000);
  CHECK(ost.notes->stats == 2);
}

TEST_CASE("a size that needs an OST that is away is not answered until it is back") {
  Fixture fixture;
  SharedFile shared(fixture);
  auto& [ost, a, b, file] = shared;
  ost.notes->objects[objectsOf(fixture, file).front()] = 777;
  ost.disconnect();
  auto ask = [&] {
    auto request = KJ_ASSERT_NONNULL(b.session).getattrRequest();
    request.setInode(file.value);
    return request.send();
  };
  auto answer = ask();
  CHECK(!answer.poll(fixture.io.waitScope));
  fixture.advance(5 * kj::SECONDS);
  CHECK(!answer.poll(fixture.io.waitScope));
  REQUIRE(ost.registerOst() == 0);
  CHECK(answer.wait(fixture.io.waitScope).getNode().getAttributes().getSizeBytes() == 777);

  ost.disconnect();
  auto unanswered = ask();
  fixture.settle();
  for (int second = 0; second < 22; ++second) {
    a.renew();
    b.renew();
    fixture.advance(1 * kj::SECONDS);
  }
  auto failure = kj::runCatchingExceptions([&] { unanswered.wait(fixture.io.waitScope); });
  CHECK(KJ_ASSERT_NONNULL(failure).getType() == kj::Exception::Type::OVERLOADED);
}

TEST_CASE("the size that an evicted writer left is taken over, also if the OST comes back late") {
  Fixture fixture;
  OstClient ost(fixture, 0);
  REQUIRE(ost.registerOst() == 0);
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  auto file = a.create("f", true);
  ost.notes->objects[objectsOf(fixture, file).front()] = 4321;
  a.disconnect();
  ost.disconnect();
  auto opening = b.opening();
  fixture.advance(21 * kj::SECONDS);
  opening.wait(fixture.io.waitScope);  // an eviction does not wait for an OST whose lease is over
  CHECK(b.mayCache);
  auto recorded = [&] { return loadNode(*fixture.store.snapshot(), file)->attributes.sizeBytes; };
  CHECK(recorded() == 0);
  REQUIRE(ost.registerOst() == 0);
  CHECK(b.getattr(file).getNode().getAttributes().getSizeBytes() == 4321);
  fixture.until([&] {
    fixture.advance(1 * kj::SECONDS);
    return recorded() == 4321;
  });
  CHECK(writersOf(*fixture.store.snapshot(), file).empty());
}

TEST_CASE(
    "an object that cannot be looked at is EIO for its file, and its size is not asked for ever") {
  Fixture fixture;
  OstClient ost(fixture, 0);
  REQUIRE(ost.registerOst() == 0);
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  b.open();
  auto sound = a.create("sound", true), file = a.create("f", true);
  REQUIRE(a.report(file, 1000, true) == 0);
  ost.notes->objects[objectsOf(fixture, sound).front()] = 777;
  ost.notes->damaged.insert(objectsOf(fixture, file).front());
  CHECK(b.getattr(file).getError() == EIO);
  CHECK(b.lookup("f").getError() == 0);
  CHECK(b.list() == std::vector<std::string>{"f", "sound"});
  CHECK(b.getattr(sound).getNode().getAttributes().getSizeBytes() == 777);

  a.disconnect();  // evicted when its time is over
  fixture.until([&] {
    fixture.advance(1 * kj::SECONDS);
    b.renew();
    ost.renew();
    return writersOf(*fixture.store.snapshot(), file).empty();
  });
  auto node = loadNode(*fixture.store.snapshot(), file);
  CHECK(node->attributes.sizeBytes == 1000);
  CHECK(node->layout.components[0].exists[0]);  // EIO, not zeros
  CHECK(b.getattr(file).getError() == 0);
}

TEST_CASE("a report that a truncation has overtaken makes the MDS ask the objects") {
  Fixture fixture;
  SharedFile shared(fixture);
  auto& [ost, a, b, file] = shared;
  auto object = objectsOf(fixture, file).front();
  auto size = [&](Client& client) {
    return client.getattr(file).getNode().getAttributes().getSizeBytes();
  };
  auto recorded = [&] { return loadNode(*fixture.store.snapshot(), file)->attributes.sizeBytes; };

  // 1,000 bytes, not reported; cut; 300 bytes by a writer that has not heard of it.
  ost.notes->objects[object] = 0;
  REQUIRE(b.truncate(file, 0) == 0);
  ost.notes->objects[object] = 300;
  CHECK(a.report(file, 1000, true) == 0);
  CHECK(size(a) == 300);
  CHECK(size(b) == 300);
  fixture.until([&] { return recorded() == 300; });
  CHECK(writersOf(*fixture.store.snapshot(), file) == std::vector{SessionId{a.id}});
  CHECK(a.report(file, 400, true, 1) == 0);
  CHECK(recorded() == 400);

  // The writer is gone with its last report, and the OST away: nobody is told a wrong size.
  REQUIRE(b.truncate(file, 0) == 0);
  ost.notes->objects[object] = 50;
  ost.disconnect();
  auto request = KJ_ASSERT_NONNULL(a.session).executeRequest();
  request.setSlot(200);
  request.setSequence(1);
  auto report = request.initOp().initReport();
  report.setInode(file.value);
  report.setSizeBytes(400);
  report.setSettings(1);
  auto last = request.send();
  fixture.settle();
  CHECK(!last.poll(fixture.io.waitScope));
  REQUIRE(ost.registerOst() == 0);
  CHECK(last.wait(fixture.io.waitScope).getReply().getError() == 0);
  CHECK(size(b) == 50);
  fixture.until([&] {
    fixture.advance(1 * kj::SECONDS);
    return recorded() == 50;
  });
  CHECK(writersOf(*fixture.store.snapshot(), file).empty());
}

TEST_CASE("objects of an OST that is away are destroyed when it is back") {
  Fixture fixture;
  OstClient ost(fixture, 0);
  REQUIRE(ost.registerOst() == 0);
  Client a(fixture, "a");
  a.open();
  auto objects = objectsOf(fixture, a.create("f"));
  ost.disconnect();
  CHECK(a.unlink("f") == 0);
  fixture.advance(2 * kj::SECONDS);
  CHECK(garbage(*fixture.store.snapshot(), 10).size() == 1);
  REQUIRE(ost.registerOst() == 0);
  fixture.until([&] { return ost.notes->destroyed == objects; });
  fixture.until([&] { return garbage(*fixture.store.snapshot(), 10).empty(); });
}

TEST_CASE("files of an OST that is away hide no garbage behind them") {
  Fixture fixture;
  OstClient away(fixture, 0), here(fixture, 1);
  REQUIRE(away.registerOst() == 0);
  Client a(fixture, "a");
  a.open();
  constexpr size_t kFiles = kReapFilesPerRound + 10;  // none of them on OST 1
  for (size_t i = 0; i < kFiles; ++i) a.create("away" + std::to_string(i));
  away.disconnect();
  REQUIRE(here.registerOst() == 0);
  auto objects = objectsOf(fixture, a.create("here"));
  for (size_t i = 0; i < kFiles; ++i) REQUIRE(a.unlink("away" + std::to_string(i)) == 0);
  REQUIRE(a.unlink("here") == 0);
  fixture.until([&] {
    fixture.advance(1 * kj::SECONDS);
    a.renew();
    here.renew();
    return here.notes->destroyed == objects;
  });
  CHECK(garbage(*fixture.store.snapshot(), 2 * kFiles).size() == kFiles);
}
