#include "mds/truncations.h"

#include <map>

#include "mds/namespace.h"
#include "mds/state_machine.h"
#include "striping/layout.h"
#include "trainfs/logging.h"
#include "trainfs/object_id.h"

namespace trainfs::mds {

namespace {

const SetAttrOp& setOf(const Command& command) {
  return std::get<SetAttrOp>(command.op);
}

}  // namespace

Truncations::Truncations(Store& store, Log& log, Choices& choices, OstTable& osts, kj::Timer& timer,
                         const ServerOptions& options, kj::TaskSet& tasks)
    : store_(store),
      log_(log),
      choices_(choices),
      osts_(osts),
      timer_(timer),
      options_(options),
      tasks_(tasks) {
  auto left = truncations(*store_.snapshot());
  if (!left.empty()) spdlog::info("going on with {} truncations", left.size());
  for (auto& command : left) {
    auto entry = enter(setOf(command).inode);
    tasks_.add(carryOn(std::move(command), kj::mv(entry)));
  }
}

// ---- who waits ----

std::shared_ptr<Truncations::UnderWay> Truncations::enter(InodeId inode) {
  ++begun_;
  return underWay_[inode] = std::make_shared<UnderWay>();
}

void Truncations::leave(InodeId inode, UnderWay& entry, Outcome outcome) {
  entry.over = true;
  entry.outcome = outcome;
  underWay_.erase(inode);
  changed_.notify();
}

kj::Promise<void> Truncations::changed(kj::TimePoint deadline) {
  if (timer_.now() >= deadline)
    kj::throwFatalException(
        KJ_EXCEPTION(OVERLOADED, "a file's truncation waits for an OST that is away"));
  co_await changed_.wait().exclusiveJoin(timer_.atTime(deadline));
}

kj::Promise<Outcome> Truncations::run(Command command) {
  InodeId inode = setOf(command).inode;
  KJ_REQUIRE(!has(inode), "a file's truncation began within another", inode.value);
  if (isRepeated(command, *store_.snapshot())) co_return co_await log_.append(kj::mv(command));
  auto entry = enter(inode);
  tasks_.add(begin(kj::mv(command), entry));
  for (auto until = deadline(); !entry->over;) co_await changed(until);
  co_return entry->outcome;
}

// ---- the truncation ----

kj::Promise<void> Truncations::begin(Command command, std::shared_ptr<UnderWay> entry) {
  auto begun =
      co_await append({.session = command.session,
                       .identity = command.identity,
                       .op = BeginTruncationOp{setOf(command), command.slot, command.sequence}});
  if (begun.error == 0)
    co_await carryOn(kj::mv(command), kj::mv(entry));
  else
    leave(setOf(command).inode, *entry, begun);
}

kj::Promise<void> Truncations::carryOn(Command command, std::shared_ptr<UnderWay> entry) {
  InodeId inode = setOf(command).inode;
  auto outcome = co_await cutAndApply(kj::mv(command));
  leave(inode, *entry, outcome);
  if (outcome.value == kSizeToBeAsked) sizeToBeAsked_();
}

kj::Promise<Outcome> Truncations::cutAndApply(Command command) {
  const auto set = setOf(command);
  if (int error = co_await cutObjects(set); error != 0)
    command.op = EndTruncationOp{set.inode, static_cast<uint16_t>(error)};
  for (;;) {
    auto outcome = co_await append(command);
    if (!truncating(*store_.snapshot(), set.inode)) co_return outcome;
    if (outcome.error == ESTALE) {
      // The session is over, and nobody waits for the answer.
      command.session = kMdsItself;
      command.slot = kNoSlot;
    } else {
      spdlog::debug("inode {:#x}: its truncation cannot be applied yet: {}", set.inode.value,
                    strerror(outcome.error));  // the store is full
      co_await timer_.afterDelay(options_.retryDelay);
    }
  }
}

// The log is asked until it has room.
kj::Promise<Outcome> Truncations::append(Command command) {
  for (;;) {
    command.now = choices_.now();
    try {
      co_return co_await log_.append(command);
    } catch (const kj::Exception& e) {
      if (e.getType() != kj::Exception::Type::OVERLOADED) throw;
    }
    co_await timer_.afterDelay(options_.retryDelay);
  }
}

// ---- the objects ----

// Errno of one that cannot be cut.
kj::Promise<int> Truncations::cutObjects(const SetAttrOp& set) {
  auto node = loadNode(*store_.snapshot(), set.inode);
  if (!node) co_return 0;  // removed meanwhile, as the objects will be
  std::map<uint32_t, Cuts> byOst;
  for (auto& [object, chain, exists] : striping::objectsOf(set.inode, node->layout, false)) {
    auto size = striping::objectSize(node->layout, object.component, object.stripe, set.keepBytes);
    byOst[chain.value].push_back({object, size});
  }
  auto calls = kj::heapArrayBuilder<kj::Promise<int>>(byOst.size());
  for (auto& [index, cuts] : byOst) calls.add(cutOn(index, std::move(cuts)));
  int error = 0;
  for (int each : co_await kj::joinPromises(calls.finish()))
    if (each != 0) error = each;
  if (error != 0)
    spdlog::error("inode {:#x}: part of it cannot be truncated: {}", set.inode.value,
                  strerror(error));
  co_return error;
}

// A call is given up only with the registration that it was made in: as long as that lasts, it may
// still cut what is written after a second one has been answered.
kj::Promise<int> Truncations::cutOn(uint32_t index, Cuts cuts) {
  for (;;) {
    KJ_IF_MAYBE (control, osts_.control(index)) {
      auto registration = osts_.find(index)->registration;
      try {
        co_return co_await cut(*control, cuts).exclusiveJoin(registrationOver(index, registration));
      } catch (const kj::Exception& e) {
        spdlog::debug("objects on OST {} are not cut yet: {}", index, e.getDescription().cStr());
      }
    }
    co_await osts_.changed().exclusiveJoin(timer_.afterDelay(options_.retryDelay));
  }
}

kj::Promise<int> Truncations::registrationOver(uint32_t index, uint64_t registration) {
  for (;;) {
    auto* ost = osts_.find(index);
    if (ost == nullptr || !ost->active || ost->registration != registration)
      kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED, "the OST's registration is over", index));
    co_await osts_.changed();
  }
}

kj::Promise<int> Truncations::cut(rpc::OssControl::Client control, const Cuts& cuts) {
  int error = 0;
  for (size_t begin = 0; begin < cuts.size(); begin += kCutObjectsMax) {
    size_t count = std::min(kCutObjectsMax, cuts.size() - begin);
    auto request = control.truncateRequest();
    auto list = request.initCuts(count);
    for (size_t i = 0; i < count; ++i) {
      auto id = encodeObjectId(cuts[begin + i].object);
      list[i].setObject(kj::arrayPtr(id.data(), id.size()));
      list[i].setSizeBytes(cuts[begin + i].sizeBytes);
    }
    auto response = co_await request.send();
    KJ_REQUIRE(response.getErrors().size() == count, "an OST answered for other objects");
    for (int each : response.getErrors())
      if (each != 0) error = each;
  }
  co_return error;
}

}  // namespace trainfs::mds
