// The MDS session on a loop of the test's own, which takes one turn at a time.
#include <catch2/catch_test_macros.hpp>

#include "fake_mds_server.h"
#include "fuse_client/mds_session.h"

using namespace trainfs;
using namespace trainfs::client;
using namespace trainfs::client::test;

namespace {

class Deaf final : public MdsEvents {
 public:
  void sessionOpened(SessionId, uint32_t, bool, bool, std::vector<InodeId>) override {}
  void mapChanged(ClusterMap) override {}
  void recalled(std::function<void()> done) override { done(); }
  void mayCache() override {}
  void trusted(BootClock::time_point) override {}
  void lapsed() override {}
  std::vector<OpenFile> openFiles(Told) override { return {}; }
  bool mayBeCaching() override { return false; }
  std::vector<FileLock> heldLocks() override { return {}; }
};

struct Question final : MdsCall {
  explicit Question(int& answers) : answers(answers) {}
  kj::Promise<void> send(rpc::Session::Client& session) override {
    return session.getattrRequest().send().then([this](auto&&) { ++answers; });
  }
  void fail(int) override {}
  int& answers;
};

struct Loop {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  World world;
  FakeServer server{world};
  MdsClientOptions options{
      .servers = {{"127.0.0.1", server.port()}}, .fsname = "testfs", .clientName = "test"};
  Deaf events;
  MdsInbox inbox;
  bool open = false;
  MdsSession session{options, events, inbox, io, [this](auto failure) { open = !failure; }};

  // False: not within its time.
  template <typename Condition>
  bool runUntil(Condition condition, uint32_t turnsAtOnce = kj::maxValue) {
    auto end = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      turns += io.waitScope.poll(turnsAtOnce);
    }
    return true;
  }
  uint32_t turns = 0;
};

}  // namespace

TEST_CASE("a call that comes as the session turns out to be over is answered", "[client]") {
  for (uint32_t later = 0; later < 40; ++later) {
    INFO(later << " turns after the last of the renewal's request");
    Loop loop;
    REQUIRE(loop.runUntil([&] { return loop.open; }));
    loop.world.change([&] { loop.world.forgetsSessions = true; });
    loop.session.check();
    loop.io.waitScope.poll();
    REQUIRE(loop.world.await([&] { return loop.world.renewals == 1; }));
    loop.turns = 0;
    REQUIRE(loop.runUntil([&] { return loop.turns >= later; }, 1));
    int answers = 0;
    loop.session.submit(std::make_unique<Question>(answers));
    REQUIRE(loop.runUntil([&] { return answers == 1; }));
  }
}
