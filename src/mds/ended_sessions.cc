#include "mds/ended_sessions.h"

#include "mds/namespace.h"
#include "trainfs/logging.h"

namespace trainfs::mds {

kj::Promise<void> EndedSessions::run() {
  for (;;) {
    auto session = endedWithHolds(*store_.snapshot());
    if (!session) {
      co_await work_.wait();
      continue;
    }
    try {
      co_await releaseAll(*session);
      continue;
    } catch (const kj::Exception& e) {
      spdlog::error("what session {} held cannot be released: {}", session->value,
                    e.getDescription().cStr());
    }
    co_await timer_.afterDelay(retryDelay_);
  }
}

kj::Promise<void> EndedSessions::releaseAll(SessionId session) {
  for (bool more = true; more;) {
    auto outcome = co_await commands_.run(EndSessionOp{session});
    more = outcome.value != 0;
    reaper_.kick();
  }
}

}  // namespace trainfs::mds
