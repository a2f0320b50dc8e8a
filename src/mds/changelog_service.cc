#include "mds/changelog_service.h"

#include "trainfs/logging.h"

namespace trainfs::mds {

ChangelogService::Changes ChangelogService::read(uint64_t first, uint32_t most) {
  auto view = store_.snapshot();
  return {readChangelog(*view, first, most), lastChange(*view)};
}

ChangelogService::Users ChangelogService::users() {
  auto view = store_.snapshot();
  return {changelogUsers(*view).users, lastChange(*view)};
}

kj::Promise<Result<uint32_t>> ChangelogService::add(std::string name) {
  auto outcome = co_await commands_.run(RegisterChangelogOp{name});
  if (outcome.error != 0) co_return Errno(outcome.error);
  spdlog::info("changelog user cl{} ({}) is registered", outcome.value,
               name.empty() ? "no name" : name);
  co_return static_cast<uint32_t>(outcome.value);
}

kj::Promise<Status> ChangelogService::remove(uint32_t user) {
  auto outcome = co_await commands_.run(DeregisterChangelogOp{user});
  if (outcome.error != 0) co_return Errno(outcome.error);
  spdlog::info("changelog user cl{} is deregistered", user);
  cleared_.notify();
  co_return Done{};
}

kj::Promise<Status> ChangelogService::clear(uint32_t user, uint64_t upTo) {
  auto outcome = co_await commands_.run(ClearChangelogOp{user, upTo});
  if (outcome.error != 0) co_return Errno(outcome.error);
  cleared_.notify();
  co_return Done{};
}

kj::Promise<void> ChangelogService::run() {
  for (;;) {
    try {
      co_await removeLaggards();
      while (hasClearedChanges(*store_.snapshot())) co_await trim();
    } catch (const kj::Exception& e) {
      spdlog::error("the changelog cannot be looked after: {}", e.getDescription().cStr());
    }
    co_await cleared_.wait().exclusiveJoin(timer_.afterDelay(pause_));
  }
}

kj::Promise<void> ChangelogService::trim() {
  for (bool more = true; more;) {
    auto outcome = co_await commands_.run(TrimChangelogOp{});
    more = outcome.value != 0;
  }
}

kj::Promise<void> ChangelogService::removeLaggards() {
  auto view = store_.snapshot();
  auto all = changelogUsers(*view);
  auto last = lastChange(*view);
  view = nullptr;
  auto now = choices_.now().seconds;
  for (auto& user : all.users) {
    uint64_t behind = last - user.cleared;
    auto idle = (now - user.lastUse.seconds) * kj::SECONDS;
    bool idleTooLong = behind != 0 && idle > idleMax_;
    if (behind <= recordsMax_ && !idleTooLong) continue;
    spdlog::warn(
        "changelog user cl{} ({}) has {} records to clear and was last heard of {} s ago: it is "
        "deregistered",
        user.id, user.name, behind, idle / kj::SECONDS);
    (void)co_await remove(user.id);  // somebody else may just have done it
  }
}

}  // namespace trainfs::mds
