#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "fixture.h"

using namespace trainfs;
using namespace trainfs::mds;
using namespace trainfs::mds::test;

namespace {

using Events = std::vector<std::string>;

bool throws(const std::function<void()>& call) {
  return kj::runCatchingExceptions([&] { call(); }) != nullptr;
}

}  // namespace

TEST_CASE("a session of another file system is refused in words") {
  Fixture fixture;
  Connection connection(fixture);
  auto request = connection.mds.openSessionRequest();
  request.initRequest().setFsname("other");
  auto opened = request.send().wait(fixture.io.waitScope);
  CHECK(opened.getOpened().getError() == EINVAL);
  CHECK(std::string(opened.getOpened().getMessage().cStr()).find("trainfs") != std::string::npos);
}

TEST_CASE("a session renews until it is ended, and cannot be resumed then") {
  Fixture fixture;
  Client client(fixture, "a");
  client.open();
  CHECK(client.mayCache);
  CHECK(client.renew());
  KJ_ASSERT_NONNULL(client.session).endRequest().send().wait(fixture.io.waitScope);
  CHECK(!client.renew());
  CHECK(throws([&] { client.lookup("x"); }));
  client.resume({});
  CHECK(client.error == ESTALE);
}

TEST_CASE("a second client is answered after the first has given up its caches") {
  Fixture fixture;
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  a.notes->answers = false;
  auto opening = b.opening();
  fixture.until([&] { return a.notes->events == Events{"recall"}; });
  CHECK(!opening.poll(fixture.io.waitScope));
  CHECK(b.id == 0);
  a.notes->release();
  opening.wait(fixture.io.waitScope);
  CHECK(b.id != 0);
  CHECK(!b.mayCache);
}

TEST_CASE("a newcomer that goes away while it waits leaves nothing behind") {
  Fixture fixture;
  Client a(fixture, "a"), b(fixture, "b"), c(fixture, "c");
  a.open();
  a.notes->answers = false;
  {
    auto opening = b.opening();
    fixture.until([&] { return a.notes->events == Events{"recall"}; });
  }
  b.disconnect();
  a.notes->release();
  fixture.until([&] { return a.notes->events == Events{"recall", "mayCache"}; });
  a.notes->answers = true;
  c.open();
  CHECK(fixture.server->core().sessions.size() == 2);
}

TEST_CASE("the last client left is told that it may cache") {
  Fixture fixture;
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  b.open();
  KJ_ASSERT_NONNULL(b.session).endRequest().send().wait(fixture.io.waitScope);
  fixture.until([&] { return a.notes->events == Events{"recall", "mayCache"}; });
}

TEST_CASE("a client that renews has longer than a term to give up its caches, but not for ever") {
  Fixture fixture;
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  a.notes->answers = false;
  auto opening = b.opening();
  for (int second = 0; second < 55; ++second) {
    fixture.advance(1 * kj::SECONDS);
    REQUIRE(a.renew());
  }
  CHECK(!opening.poll(fixture.io.waitScope));
  fixture.advance(6 * kj::SECONDS);
  opening.wait(fixture.io.waitScope);
  CHECK(b.mayCache);
  CHECK(!a.renew());
}

TEST_CASE("a silent holder of caches is fenced at every OST before the newcomer is answered") {
  Fixture fixture;
  OstClient ost(fixture, 0);
  REQUIRE(ost.registerOst() == 0);
  ost.notes->answersFences = false;
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  a.notes->answers = false;
  CHECK(ost.checkSession(a.id, a.epoch));
  auto opening = b.opening();
  for (int second = 0; second < 11; ++second) {
    fixture.advance(1 * kj::SECONDS);
    ost.renew();
  }
  fixture.until([&] { return ost.notes->fenced == std::vector<uint64_t>{a.id}; });
  CHECK(!opening.poll(fixture.io.waitScope));
  CHECK(!ost.checkSession(a.id, a.epoch));
  ost.notes->release();
  opening.wait(fixture.io.waitScope);
  CHECK(b.error == 0);
  CHECK(throws([&] { a.lookup("x"); }));
  a.resume({});
  CHECK(a.error == ESTALE);
}

TEST_CASE(
    "a client that was caching when the server restarted is asked before a newcomer gets in") {
  Fixture fixture;
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  a.disconnect();
  fixture.restart();
  a.caching = true;
  a.notes->answers = false;
  auto opening = b.opening();
  fixture.settle();
  a.resume({});
  fixture.until([&] { return a.notes->events == Events{"recall"}; });
  CHECK(!opening.poll(fixture.io.waitScope));
  a.notes->release();
  opening.wait(fixture.io.waitScope);
  CHECK(!b.mayCache);
}

TEST_CASE("a session that ends is fenced at every OST first") {
  Fixture fixture;
  OstClient ost(fixture, 0);
  REQUIRE(ost.registerOst() == 0);
  ost.notes->answersFences = false;
  Client a(fixture, "a");
  a.open();
  auto ending = KJ_ASSERT_NONNULL(a.session).endRequest().send();
  fixture.until([&] { return ost.notes->fenced == std::vector<uint64_t>{a.id}; });
  CHECK(fixture.server->core().sessions.size() == 1);
  ost.notes->release();
  ending.wait(fixture.io.waitScope);
  CHECK(fixture.server->core().sessions.size() == 0);
}

TEST_CASE("an OST that cannot be reached is waited for until its lease is over") {
  Fixture fixture;
  OstClient ost(fixture, 0);
  REQUIRE(ost.registerOst() == 0);
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  a.disconnect();
  fixture.advance(8 * kj::SECONDS);
  ost.renew();
  ost.disconnect();
  auto opening = b.opening();
  fixture.advance(9 * kj::SECONDS);  // a's term is over, the OST's is not
  CHECK(!opening.poll(fixture.io.waitScope));
  fixture.advance(2 * kj::SECONDS);
  opening.wait(fixture.io.waitScope);
  CHECK(b.mayCache);
}

TEST_CASE("a client that resumes while a newcomer waits is asked for its caches then") {
  Fixture fixture;
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  auto file = a.create("f");
  a.disconnect();
  auto opening = b.opening();
  fixture.settle();
  CHECK(!opening.poll(fixture.io.waitScope));
  a.notes->answers = false;
  a.resume({{file, false}});
  CHECK(a.mayCache);
  fixture.until([&] { return a.notes->events == Events{"recall"}; });
  CHECK(!opening.poll(fixture.io.waitScope));
  a.notes->opens = {{file, false}};
  a.notes->release();
  opening.wait(fixture.io.waitScope);
  CHECK(!b.mayCache);
  CHECK(b.unlink("f") == 0);
  CHECK(a.getattr(file).getError() == 0);
}

TEST_CASE("a client whose connection is lost is evicted after its silence") {
  Fixture fixture;
  Client a(fixture, "a");
  a.open();
  a.disconnect();
  fixture.advance(59 * kj::SECONDS);
  CHECK(fixture.server->core().sessions.size() == 1);
  fixture.advance(2 * kj::SECONDS);
  fixture.until([&] { return fixture.server->core().sessions.size() == 0; });
}

TEST_CASE(
    "a client that comes back after its eviction learns which of its open files are removed") {
  Fixture fixture;
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  auto gone = a.create("gone", true), kept = a.create("kept", true), named = a.create("named");
  a.disconnect();
  fixture.advance(61 * kj::SECONDS);
  fixture.until([&] { return fixture.server->core().sessions.size() == 0; });
  b.open();
  REQUIRE(b.openFile(kept) == 0);
  REQUIRE(b.unlink("gone") == 0);
  REQUIRE(b.unlink("kept", {kept}) == 0);

  a.opening(0, {{gone, true}, {kept, true}, {named, false}}).wait(fixture.io.waitScope);
  REQUIRE(a.error == 0);
  std::sort(a.removed.begin(), a.removed.end());
  CHECK(a.removed == std::vector{gone.value, kept.value});
  auto& sessions = fixture.server->core().sessions;
  auto back = sessions.find({a.id});
  CHECK(back->opens.size() == 1);
  CHECK(back->opens.contains(named));
  // What is removed from now on is kept for it.
  CHECK(b.unlink("named") == 0);
  CHECK(a.getattr(named).getError() == 0);
}

TEST_CASE("alone again after a lost connection, a client may still cache") {
  Fixture fixture;
  Client a(fixture, "a");
  a.open();
  a.disconnect();
  fixture.advance(5 * kj::SECONDS);
  a.resume({});
  CHECK(a.error == 0);
  CHECK(a.mayCache);
}

TEST_CASE("sessions beyond the limit are told to come back") {
  Fixture fixture;
  fixture.stop();
  fixture.options.sessionsMax = 1;
  fixture.start();
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  b.opening().wait(fixture.io.waitScope);
  CHECK(b.error == EAGAIN);
}

TEST_CASE("a peer that talks garbage loses its connection and nothing else happens") {
  Fixture fixture;
  Client a(fixture, "a");
  a.open();
  Connection broken(fixture);
  auto stream = fixture.io.provider->getNetwork()
                    .parseAddress("127.0.0.1", fixture.server->port())
                    .wait(fixture.io.waitScope)
                    ->connect()
                    .wait(fixture.io.waitScope);
  std::string garbage(4096, '\xff');
  stream->write(garbage.data(), garbage.size()).wait(fixture.io.waitScope);
  stream->readAllBytes().ignoreResult().catch_([](kj::Exception&&) {}).wait(fixture.io.waitScope);
  CHECK(a.renew());
  a.create("still");
}

TEST_CASE("connections beyond the limit are closed") {
  Fixture fixture;
  fixture.stop();
  fixture.options.connectionsMax = 1;
  fixture.start();
  Client a(fixture, "a");
  a.open();
  Connection second(fixture);
  CHECK(throws([&] { second.mds.helloRequest().send().wait(fixture.io.waitScope); }));
  CHECK(a.renew());
}

TEST_CASE("a resumption that was long on its way does not take the session over") {
  Fixture fixture;
  Client client(fixture, "a");
  client.open();
  auto file = client.create("f", /*writing=*/true);
  client.resume({{file, true}});
  REQUIRE(client.error == 0);
  auto latest = std::move(client.connection);
  client.resumptions -= 2;  // begun before that one
  CHECK(throws([&] { client.resume({}); }));
  fixture.settle();
  CHECK(client.renew());
  CHECK(writersOf(*fixture.store.snapshot(), file) == std::vector<SessionId>{{client.id}});
  // The next one is none.
  client.resumptions += 2;
  client.resume({});
  CHECK(client.error == 0);
  CHECK(client.renew());
}

TEST_CASE("over a connection that its session has left, a client learns it by its renewal") {
  Fixture fixture;
  Client client(fixture, "a");
  client.open();
  auto connection = std::move(client.connection);
  auto session = KJ_ASSERT_NONNULL(client.session);
  client.resume({});
  auto renewal = session.renewRequest().send();
  auto failure = kj::runCatchingExceptions([&] { renewal.wait(fixture.io.waitScope); });
  CHECK(KJ_ASSERT_NONNULL(failure).getType() == kj::Exception::Type::DISCONNECTED);
  CHECK(client.renew());
}
