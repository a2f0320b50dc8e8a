#include "mds/reaper.h"

#include <algorithm>

#include "mds/namespace.h"
#include "striping/layout.h"
#include "trainfs/logging.h"
#include "trainfs/object_id.h"

namespace trainfs::mds {

void Reaper::kick() {
  kicked_ = true;
  work_.notify();
}

kj::Promise<void> Reaper::run() {
  kj::Duration backoff = options_.retryDelay;
  for (;;) {
    kicked_ = false;
    Lap lap = co_await goOverAll();
    if (!lap.left) {
      backoff = options_.retryDelay;
      if (!kicked_) co_await work_.wait();
      continue;
    }
    // An OST is away: its coming back, or time, may help. New garbage waits with the old: a lap for
    // each new record would look at all that is left again.
    co_await osts_.changed().exclusiveJoin(timer_.afterDelay(backoff));
    backoff = lap.reaped ? options_.retryDelay : std::min(2 * backoff, kReapBackoffMax);
  }
}

kj::Promise<Reaper::Lap> Reaper::goOverAll() {
  Lap lap;
  for (std::optional<Garbage> last;;) {
    Round round = plan(last);
    lap.left |= round.postponed;
    if (round.files.empty()) {
      co_await kj::evalLast([] {});  // the lap may be long, and others use this loop
    } else {
      bool done = co_await reap(std::move(round));
      (done ? lap.reaped : lap.left) = true;
    }
    if (!last) co_return lap;
  }
}

// The records behind `last`, which moves on; none: there are no more.
Reaper::Round Reaper::plan(std::optional<Garbage>& last) {
  Round round;
  auto files = garbage(*store_.snapshot(), kReapFilesPerRound, last ? &*last : nullptr);
  last = files.size() < kReapFilesPerRound ? std::nullopt : std::optional(files.back());
  for (auto& file : files) {
    auto objects = striping::objectsOf(file.inode, file.layout, false);
    bool reachable = std::all_of(objects.begin(), objects.end(), [&](auto& placed) {
      return osts_.control(placed.chain.value) != nullptr;
    });
    if (!reachable) {
      round.postponed = true;
      continue;
    }
    for (auto& placed : objects) round.byOst[placed.chain.value].push_back(placed.object);
    round.files.push_back(std::move(file));
  }
  return round;
}

// True: all records of the round are gone.
kj::Promise<bool> Reaper::reap(Round round) {
  auto calls = kj::heapArrayBuilder<kj::Promise<bool>>(round.byOst.size());
  for (auto& [ost, objects] : round.byOst) calls.add(destroyOn(ost, std::move(objects)));
  bool all = true;
  for (bool done : co_await kj::joinPromises(calls.finish())) all &= done;
  if (!all) co_return false;

  auto forgotten = kj::heapArrayBuilder<kj::Promise<Outcome>>(round.files.size());
  for (auto& file : round.files)
    forgotten.add(commands_.run(ReapedOp{file.inode, file.layout.generation}));
  co_await kj::joinPromises(forgotten.finish());
  spdlog::debug("destroyed the objects of {} files", round.files.size());
  co_return true;
}

kj::Promise<bool> Reaper::destroyOn(uint32_t index, std::vector<ObjectId> objects) {
  try {
    co_await destroy(KJ_UNWRAP_OR(osts_.control(index), co_return false), objects);
    co_return true;
  } catch (const kj::Exception& e) {
    spdlog::warn("objects on OST {} are not destroyed yet: {}", index, e.getDescription().cStr());
  }
  co_return false;
}

kj::Promise<void> Reaper::destroy(rpc::OssControl::Client control,
                                  const std::vector<ObjectId>& objects) {
  for (size_t begin = 0; begin < objects.size(); begin += kReapObjectsPerCall) {
    size_t count = std::min(kReapObjectsPerCall, objects.size() - begin);
    auto request = control.destroyRequest();
    auto list = request.initObjects(count);
    for (size_t i = 0; i < count; ++i) {
      auto id = encodeObjectId(objects[begin + i]);
      list.set(i, kj::arrayPtr(id.data(), id.size()));
    }
    co_await timer_.timeoutAfter(kDestroyTimeout, request.send().ignoreResult());
  }
}

}  // namespace trainfs::mds
