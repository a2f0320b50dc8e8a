// Who may rely on its caches while there are several clients.
#include <catch2/catch_test_macros.hpp>

#include "fixture.h"

using namespace trainfs;
using namespace trainfs::mds;
using namespace trainfs::mds::test;

namespace {

using Events = std::vector<std::string>;

// `a` works and has the caches, `b` is at rest.
struct OneAtWork {
  OneAtWork() {
    REQUIRE(ost.registerOst() == 0);
    a.open();
    b.open();
    b.lookup("x");
    work(4);
    REQUIRE(a.notes->events == Events{"recall", "mayCache"});
    a.notes->events.clear();
  }
  void pass(int seconds) {
    for (; seconds > 0; --seconds) {
      a.renew();
      b.renew();
      ost.renew();
      fixture.advance(1 * kj::SECONDS);
    }
  }
  void work(int seconds) {
    for (; seconds > 0; --seconds) {
      a.lookup("x");
      pass(1);
    }
  }
  // Of `a`, as the server sees it.
  bool caches() {
    auto session = fixture.server->core().sessions.find({a.id});
    return session && session->mayCache;
  }
  Fixture fixture;
  OstClient ost{fixture, 0};
  Client a{fixture, "a"}, b{fixture, "b"};
};

}  // namespace

TEST_CASE("a client keeps its caches as long as the others ask for nothing") {
  OneAtWork t;
  t.a.create("f");
  t.pass(100);
  CHECK(t.a.notes->events.empty());
  CHECK(t.b.notes->events.empty());
  CHECK(t.caches());
}

TEST_CASE("what a client at rest asks for is answered after the caches are given up") {
  OneAtWork t;
  t.a.create("f");
  t.a.notes->answers = false;
  auto unlinking = t.b.unlinking("f");
  auto getattr = KJ_ASSERT_NONNULL(t.b.session).getattrRequest();
  getattr.setInode(kRootInode.value);
  auto looking = getattr.send();
  t.fixture.until([&] { return !t.a.notes->events.empty(); });
  CHECK(!unlinking.poll(t.fixture.io.waitScope));
  CHECK(!looking.poll(t.fixture.io.waitScope));
  t.a.lookup("f");  // what the holder asks for waits for nothing
  t.a.notes->release();
  CHECK(unlinking.wait(t.fixture.io.waitScope) == 0);
  CHECK(looking.wait(t.fixture.io.waitScope).getError() == 0);
  CHECK(t.a.notes->events == Events{"recall"});  // once for both
  CHECK(!t.caches());
}

TEST_CASE("a holder of caches reports while another waits for them") {
  OneAtWork t;
  auto file = t.a.create("f", /*writing=*/true);
  REQUIRE(t.a.openFile(file, true) == 0);
  t.a.notes->answers = false;
  t.a.notes->opens = {{file, true}};
  auto unlinking = t.b.unlinking("f");
  t.fixture.until([&] { return !t.a.notes->events.empty(); });
  CHECK(t.a.report(file, 5, /*stillWriting=*/true) == 0);
  t.a.notes->release();
  CHECK(unlinking.wait(t.fixture.io.waitScope) == 0);
  CHECK(t.a.getattr(file).getError() == 0);
}

TEST_CASE("a client that has a file open is not at rest") {
  OneAtWork t;
  auto file = t.a.create("f");
  REQUIRE(t.b.openFile(file) == 0);
  t.work(10);
  CHECK(t.a.notes->events == Events{"recall"});
  t.b.release(file);
  t.work(4);
  CHECK(t.a.notes->events == Events{"recall", "mayCache"});
}

TEST_CASE("a client at rest gets nothing before a silent holder of caches is evicted") {
  OneAtWork t;
  t.a.create("f");
  t.a.notes->answers = false;
  auto unlinking = t.b.unlinking("f");
  for (int second = 0; second < 8; ++second) {
    t.b.renew();
    t.ost.renew();
    t.fixture.advance(1 * kj::SECONDS);
  }
  CHECK(!unlinking.poll(t.fixture.io.waitScope));
  CHECK(t.ost.notes->fenced.empty());
  t.fixture.advance(2 * kj::SECONDS);
  CHECK(unlinking.wait(t.fixture.io.waitScope) == 0);
  CHECK(t.ost.notes->fenced == std::vector<uint64_t>{t.a.id});
}

TEST_CASE("after a restart the one who was caching goes on, until another asks for something") {
  OneAtWork t;
  t.fixture.restart();
  t.b.resume({});
  CHECK(!t.b.mayCache);
  t.a.caching = true;
  t.a.resume({});
  CHECK(t.a.mayCache);
  t.a.notes->events.clear();
  t.a.notes->answers = false;
  auto unlinking = t.b.unlinking("f");
  t.fixture.until([&] { return t.a.notes->events == Events{"recall"}; });
  CHECK(!unlinking.poll(t.fixture.io.waitScope));
  t.a.notes->release();
  CHECK(unlinking.wait(t.fixture.io.waitScope) == ENOENT);
}

TEST_CASE("caches that two claim after a restart are one's, and the other is evicted") {
  OneAtWork t;
  t.fixture.restart();
  t.a.caching = t.b.caching = true;
  t.a.resume({});
  CHECK(t.a.mayCache);
  t.b.resume({});
  CHECK(t.b.error == ESTALE);
}
