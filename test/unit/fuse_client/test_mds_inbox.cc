// The way to the MDS thread: others wait when it is full, the MDS thread itself does not.
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "fuse_client/mds_call.h"

using namespace trainfs;
using namespace trainfs::client;

namespace {

struct NoCall final : MdsCall {
  kj::Promise<void> send(rpc::Session::Client&) override { return kj::READY_NOW; }
  void fail(int) override {}
};

void fill(MdsInbox& inbox) {
  for (size_t i = 0; i < MdsInbox::kCallsMax; ++i) inbox.put(std::make_unique<NoCall>());
}

}  // namespace

TEST_CASE("a full inbox keeps others waiting, and not the thread that empties it", "[client]") {
  MdsInbox inbox;
  inbox.take();  // this thread is the MDS thread
  fill(inbox);
  std::atomic<bool> through{false};
  std::thread other([&] {
    inbox.put(std::make_unique<NoCall>());
    through = true;
  });
  fill(inbox);  // would wait for ever
  CHECK(!through);
  CHECK(inbox.take().calls.size() == 2 * MdsInbox::kCallsMax);
  other.join();
  CHECK(inbox.take().calls.size() == 1);
}
