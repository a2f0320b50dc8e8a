// Locks of files between clients, over real connections.
#include <catch2/catch_test_macros.hpp>

#include "fixture.h"
#include "lock_wire.h"

using namespace trainfs;
using namespace trainfs::mds;
using namespace trainfs::mds::test;

namespace {

constexpr int kWaits = -1;

FileLock exclusive(uint64_t owner, LockRange range = {}) {
  return {{9}, LockKind::kRecord, owner, range, LockMode::kExclusive, 4711};
}

// One call of a client, and what came of it so far.
class LockCall {
 public:
  LockCall(Client& client, const FileLock& lock, uint64_t wait = 0, bool giveUp = false)
      : fixture_(client.fixture), promise_(nullptr) {
    auto request = KJ_ASSERT_NONNULL(client.session).lockRequest();
    encodeLock(lock, request.initLock());
    request.setWait(wait);
    request.setGiveUp(giveUp);
    promise_ = request.send()
                   .then([this](auto response) { error_ = response.getError(); },
                         [this](kj::Exception&&) { failed_ = true; })
                   .eagerlyEvaluate(nullptr);
  }
  // An errno, 0, or kWaits. Runs the loop until nothing moves any more.
  int now() {
    fixture_.settle();
    REQUIRE(!failed_);
    return error_;
  }
  bool failed() {
    fixture_.settle();
    return failed_;
  }
  void drop() { promise_ = nullptr; }

 private:
  Fixture& fixture_;
  int error_ = kWaits;
  bool failed_ = false;
  kj::Promise<void> promise_;
};

int lock(Client& client, const FileLock& lock) {
  return LockCall(client, lock).now();
}

void unlock(Client& client, const FileLock& lock) {
  auto request = KJ_ASSERT_NONNULL(client.session).unlockRequest();
  encodeLock(lock, request.initLock());
  CHECK(request.send().wait(client.fixture.io.waitScope).getError() == 0);
}

void end(Client& client) {
  KJ_ASSERT_NONNULL(client.session).endRequest().send().wait(client.fixture.io.waitScope);
}

struct Three {
  Fixture fixture;
  Client a{fixture, "a"}, b{fixture, "b"}, c{fixture, "c"};
  Three() {
    a.open();
    b.open();
    c.open();
  }
  // Everybody but `silent` renews.
  void pass(kj::Duration duration, Client* silent, OstClient* ost = nullptr) {
    for (auto left = duration; left > 0 * kj::SECONDS; left -= 1 * kj::SECONDS) {
      for (auto* client : {&a, &b, &c})
        if (client != silent) client->renew();
      if (ost != nullptr) ost->renew();
      fixture.advance(1 * kj::SECONDS);
    }
  }
};

}  // namespace

TEST_CASE("a lock keeps other clients out until it is let go") {
  Three t;
  CHECK(lock(t.a, exclusive(1)) == 0);
  CHECK(lock(t.a, exclusive(1)) == 0);  // again, as after a lost answer
  CHECK(lock(t.a, exclusive(2)) == EAGAIN);
  CHECK(lock(t.b, exclusive(1)) == EAGAIN);
  LockCall wait(t.b, exclusive(1), 1);
  CHECK(wait.now() == kWaits);
  unlock(t.a, exclusive(1));
  CHECK(wait.now() == 0);
  CHECK(lock(t.a, exclusive(1)) == EAGAIN);
}

TEST_CASE("a client asks who is in the way, and is told of processes of its own only") {
  Three t;
  auto ask = [](Client& client, const FileLock& lock) {
    auto request = KJ_ASSERT_NONNULL(client.session).testLockRequest();
    encodeLock(lock, request.initLock());
    return request.send().wait(client.fixture.io.waitScope);
  };
  CHECK(!ask(t.a, exclusive(2)).getFound());
  CHECK(lock(t.a, exclusive(1, {10, 20})) == 0);
  CHECK(!ask(t.a, exclusive(1)).getFound());
  auto own = ask(t.a, exclusive(2));
  CHECK(own.getFound());
  CHECK(own.getConflict().getProcess() == 4711);
  CHECK(own.getConflict().getFirst() == 10);
  CHECK(own.getConflict().getLast() == 20);
  CHECK(ask(t.b, exclusive(1)).getConflict().getProcess() == 0);
}

TEST_CASE("a range that is none is refused") {
  Three t;
  CHECK(lock(t.a, exclusive(1, {2, 1})) == EINVAL);
  CHECK(lock(t.a, exclusive(1, {0, kLockLastByte + 1})) == EINVAL);
  auto part = exclusive(1, {0, 5});
  part.kind = LockKind::kWhole;
  CHECK(lock(t.a, part) == EINVAL);
}

TEST_CASE("a wait that is given up leaves nothing, unless it was granted before") {
  Three t;
  CHECK(lock(t.a, exclusive(1)) == 0);
  {
    LockCall wait(t.b, exclusive(1), 1);
    CHECK(wait.now() == kWaits);
    wait.drop();
    CHECK(LockCall(t.b, exclusive(1), 1, true).now() == EINTR);
  }
  {
    LockCall wait(t.c, exclusive(1), 1);
    CHECK(wait.now() == kWaits);
    wait.drop();  // and the grant comes before the client's word
    unlock(t.a, exclusive(1));
    CHECK(LockCall(t.c, exclusive(1), 1, true).now() == 0);
  }
  CHECK(lock(t.b, exclusive(1)) == EAGAIN);
  unlock(t.c, exclusive(1));
  CHECK(lock(t.b, exclusive(1)) == 0);
}

TEST_CASE("a wait keeps its place over a lost connection") {
  Three t;
  CHECK(lock(t.a, exclusive(1)) == 0);
  LockCall first(t.b, exclusive(1), 1);
  CHECK(first.now() == kWaits);
  LockCall second(t.c, exclusive(1), 1);
  CHECK(second.now() == kWaits);
  t.b.disconnect();
  CHECK(first.failed());
  t.b.resume({});
  LockCall again(t.b, exclusive(1), 1);
  CHECK(again.now() == kWaits);
  unlock(t.a, exclusive(1));
  CHECK(again.now() == 0);
  CHECK(second.now() == kWaits);

  // Granted while the client is away: it learns it when it asks again.
  t.c.disconnect();
  unlock(t.b, exclusive(1));
  CHECK(lock(t.a, exclusive(1)) == EAGAIN);
  t.c.resume({});
  CHECK(LockCall(t.c, exclusive(1), 1).now() == 0);
}

TEST_CASE("clients that would wait for each other for ever are told so") {
  Three t;
  CHECK(lock(t.a, exclusive(1, {0, 0})) == 0);
  CHECK(lock(t.b, exclusive(1, {1, 1})) == 0);
  CHECK(lock(t.c, exclusive(1, {2, 2})) == 0);
  LockCall one(t.a, exclusive(1, {1, 1}), 1), two(t.b, exclusive(1, {2, 2}), 1);
  CHECK(one.now() == kWaits);
  CHECK(two.now() == kWaits);
  CHECK(LockCall(t.c, exclusive(1, {0, 0}), 1).now() == EDEADLK);
  unlock(t.c, exclusive(1));
  CHECK(two.now() == 0);
}

TEST_CASE("a client that is unmounted lets go of its locks at once") {
  Three t;
  CHECK(lock(t.a, exclusive(1)) == 0);
  LockCall wait(t.b, exclusive(1), 1), own(t.a, exclusive(2), 1);
  CHECK(wait.now() == kWaits);
  end(t.a);
  CHECK(wait.now() == 0);
  CHECK(own.failed());
}

TEST_CASE("a silent client loses its locks after a term if others wait, and is fenced first") {
  Three t;
  OstClient ost(t.fixture, 0);
  REQUIRE(ost.registerOst() == 0);
  ost.notes->answersFences = false;
  CHECK(lock(t.a, exclusive(1)) == 0);
  t.pass(15 * kj::SECONDS, &t.a, &ost);
  CHECK(t.a.renew());  // nobody waited
  LockCall wait(t.b, exclusive(1), 1);
  t.pass(9 * kj::SECONDS, &t.a, &ost);
  CHECK(wait.now() == kWaits);
  t.pass(3 * kj::SECONDS, &t.a, &ost);
  CHECK(ost.notes->fenced == std::vector<uint64_t>{t.a.id});
  CHECK(wait.now() == kWaits);
  ost.notes->release();
  CHECK(wait.now() == 0);
  CHECK(lock(t.c, exclusive(1)) == EAGAIN);
}

TEST_CASE("after a restart locks are claimed again before anybody gets a new one") {
  Three t;
  CHECK(lock(t.a, exclusive(1)) == 0);
  t.fixture.restart();
  t.b.resume({});
  LockCall now(t.b, exclusive(1)), wait(t.b, exclusive(1), 1), other(t.b, exclusive(1, {0, 0}), 2);
  CHECK(now.now() == kWaits);
  CHECK(wait.now() == kWaits);
  other.drop();
  CHECK(LockCall(t.b, exclusive(1, {0, 0}), 2, true).now() == EINTR);
  t.a.resume({}, {exclusive(1)});
  REQUIRE(t.a.error == 0);
  CHECK(now.now() == kWaits);  // c may have some, too
  t.c.resume({});
  CHECK(now.now() == EAGAIN);
  CHECK(wait.now() == kWaits);
  unlock(t.a, exclusive(1));
  CHECK(wait.now() == 0);
}

TEST_CASE("a flock that is given up after a restart is gone, as at any time") {
  Three t;
  FileLock share{{9}, LockKind::kWhole, 1, {}, LockMode::kShared, 4711}, alone = share;
  alone.mode = LockMode::kExclusive;
  t.fixture.restart();
  t.a.resume({}, {share});
  LockCall wait(t.a, alone, 1);
  CHECK(wait.now() == kWaits);
  wait.drop();
  CHECK(LockCall(t.a, alone, 1, true).now() == EINTR);
  t.b.resume({});
  t.c.resume({});
  CHECK(lock(t.b, alone) == 0);
}

TEST_CASE("who asks for locks after a restart keeps nobody from looking") {
  Three t;
  t.fixture.restart();
  t.b.resume({});
  std::vector<std::unique_ptr<LockCall>> calls;
  for (uint64_t i = 1; i <= 2 * kSlotsPerSession; ++i)
    calls.push_back(std::make_unique<LockCall>(t.b, exclusive(i, {i, i})));
  CHECK(calls.back()->now() == kWaits);
  CHECK(t.b.lookup("f").getError() == ENOENT);
  t.a.resume({});
  t.c.resume({});
  for (auto& call : calls) REQUIRE(call->now() == 0);
}

TEST_CASE("who is gone before locks are claimed again gets none") {
  Three t;
  t.fixture.restart();
  t.b.resume({});
  LockCall now(t.b, exclusive(1)), wait(t.b, exclusive(1), 1);
  CHECK(now.now() == kWaits);
  CHECK(wait.now() == kWaits);
  end(t.b);
  t.a.resume({});
  t.c.resume({});
  CHECK(now.failed());
  CHECK(wait.failed());
  CHECK(lock(t.c, exclusive(1)) == 0);
}

TEST_CASE("after a restart a client that does not come back is not waited for beyond its term") {
  Three t;
  t.fixture.restart();
  t.b.resume({});
  t.c.resume({});
  LockCall now(t.b, exclusive(1));
  t.pass(9 * kj::SECONDS, &t.a);
  CHECK(now.now() == kWaits);
  t.pass(3 * kj::SECONDS, &t.a);
  CHECK(now.now() == 0);
  t.a.resume({}, {exclusive(1)});
  CHECK(t.a.error == ESTALE);
}

TEST_CASE("a client that claims what another has is refused") {
  Three t;
  t.fixture.restart();
  t.a.resume({}, {exclusive(1)});
  CHECK(t.a.error == 0);
  t.b.resume({}, {exclusive(1)});
  CHECK(t.b.error == ESTALE);
  // To the same server, whatever it lists changes nothing.
  t.a.disconnect();
  t.a.resume({});
  t.c.resume({});
  CHECK(lock(t.c, exclusive(1)) == EAGAIN);
}

TEST_CASE("a client waits for many locks beside its other requests, and not for more") {
  Three t;
  CHECK(lock(t.a, exclusive(1)) == 0);
  std::vector<std::unique_ptr<LockCall>> waits;
  for (uint64_t i = 1; i <= kLockWaitsPerSessionMax; ++i)
    waits.push_back(std::make_unique<LockCall>(t.b, exclusive(i), i));
  CHECK(waits.back()->now() == kWaits);
  CHECK(LockCall(t.b, exclusive(1), kLockWaitsPerSessionMax + 1).now() == ENOLCK);
  t.b.create("f");
  end(t.b);
  CHECK(t.fixture.server->core().locks.table().waiting() == 0);
}
