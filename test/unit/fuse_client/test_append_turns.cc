// Whose turn it is to append, and what the MDS is told of it.
#include <catch2/catch_test_macros.hpp>

#include "fake_servers.h"
#include "fuse_client/append_turns.h"

using namespace trainfs;
using namespace trainfs::client;
using namespace trainfs::client::test;

namespace {

constexpr InodeId kFile{7}, kOther{8};

struct Fixture {
  Script script;
  FakeMds mds{script};
  Coherence coherence;
  AppendTurns turns{mds, coherence};
  bool told = false;

  explicit Fixture(bool alone) {
    coherence.trustUntil(BootClock::time_point::max());
    if (alone) coherence.allow(coherence.version());
  }
  void tell() {
    coherence.forbid();
    turns.tell([this] { told = true; });
  }
  // A turn that is asked for: null until it has come.
  struct Taken {
    AppendTurns::TurnPtr turn;
    int error = 0;
  };
  std::shared_ptr<Taken> take(InodeId inode = kFile) {
    auto taken = std::make_shared<Taken>();
    turns.take(inode, [taken](Result<AppendTurns::TurnPtr> turn) {
      if (turn)
        taken->turn = *turn;
      else
        taken->error = turn.error().code();
    });
    return taken;
  }
};

}  // namespace

TEST_CASE("a client that is alone appends without asking, in turn", "[client]") {
  Fixture f(true);
  auto first = f.take(), second = f.take(), other = f.take(kOther);
  CHECK(first->turn);
  CHECK_FALSE(second->turn);
  CHECK(other->turn);
  first->turn.reset();
  CHECK(second->turn);
  second->turn.reset();
  CHECK_FALSE(f.script.answer("lock"));
  CHECK(f.mds.unlocked.empty());
}

TEST_CASE("a client that is not alone has its turn when the MDS says so", "[client]") {
  Fixture f(false);
  auto first = f.take(), second = f.take();
  CHECK_FALSE(first->turn);
  REQUIRE(f.script.answer("lock"));
  REQUIRE(first->turn);
  auto name = f.mds.named;
  first->turn.reset();
  REQUIRE(f.mds.unlocked.size() == 1);
  CHECK(f.mds.unlocked[0].owner == name);
  CHECK(f.mds.unlocked[0].kind == LockKind::kAppend);
  CHECK_FALSE(second->turn);
  f.mds.lockError = ENOLCK;
  REQUIRE(f.script.answer("lock"));
  CHECK(second->error == ENOLCK);
  f.mds.lockError = 0;
  auto third = f.take();
  REQUIRE(f.script.answer("lock"));
  CHECK(third->turn);
}

TEST_CASE("a turn that was begun alone is the MDS's to know before others come", "[client]") {
  Fixture f(true);
  auto turn = f.take();
  SECTION("and ends after that") {
    f.tell();
    CHECK_FALSE(f.told);
    REQUIRE(f.script.answer("lock"));
    CHECK(f.told);
    turn->turn.reset();
    CHECK(f.mds.unlocked.size() == 1);
  }
  SECTION("and ends while the MDS is being told") {
    f.tell();
    turn->turn.reset();
    auto next = f.take();
    CHECK(f.mds.unlocked.empty());  // it could come to the MDS before the lock
    CHECK_FALSE(f.told);
    REQUIRE(f.script.answer("lock"));
    CHECK(f.told);
    CHECK(f.mds.unlocked.size() == 1);
    CHECK_FALSE(next->turn);
    REQUIRE(f.script.answer("lock"));
    CHECK(next->turn);
  }
  SECTION("twice, if the first time was in vain") {
    f.tell();
    bool again = false;
    f.turns.tell([&] { again = true; });
    REQUIRE(f.script.answer("lock"));
    CHECK(f.told);
    CHECK(again);
    CHECK_FALSE(f.script.answer("lock"));
  }
}

TEST_CASE("nothing under way is nothing to tell", "[client]") {
  Fixture f(true);
  f.take()->turn.reset();
  f.tell();
  CHECK(f.told);
  CHECK(f.turns.claims().empty());
}

TEST_CASE("who waits for its turn does not hold up a recall", "[client]") {
  Fixture f(false);
  auto waiting = f.take();
  f.tell();
  CHECK(f.told);
  CHECK(f.turns.claims().empty());
}

TEST_CASE("a server that lost the turns under way gets them back", "[client]") {
  Fixture f(true);
  auto turn = f.take();
  auto claims = f.turns.claims();
  REQUIRE(claims.size() == 1);
  CHECK(claims[0].inode == kFile);
  turn->turn.reset();
  REQUIRE(f.mds.unlocked.size() == 1);
  CHECK(f.mds.unlocked[0] == claims[0]);
  CHECK(f.turns.claims().empty());
}

TEST_CASE("with the session a turn is lost", "[client]") {
  Fixture f(false);
  auto turn = f.take();
  REQUIRE(f.script.answer("lock"));
  auto next = f.take();
  CHECK_FALSE(turn->turn->lost()->load());
  f.turns.lose();
  CHECK(turn->turn->lost()->load());
  CHECK(f.turns.claims().empty());
  turn->turn.reset();
  REQUIRE(f.script.answer("lock"));
  CHECK_FALSE(next->turn->lost()->load());
}
