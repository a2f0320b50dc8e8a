#include "fuse_client/mds_lock_call.h"

#include <utility>

#include "fuse_client/mds_wire.h"

namespace trainfs::client {

namespace {
constexpr int kDropped = -1;  // beside errnos

Status statusOf(int error) {
  if (error == 0) return Done{};
  return Errno(error);
}

}  // namespace

LockCall::LockCall(const FileLock& lock, std::shared_ptr<LockWait> wait, Answer<Done> answer)
    : lock_(lock), wait_(std::move(wait)), answer_(std::move(answer)) {
  waits = wait_->number != 0;
  lingers = true;
}

kj::Promise<int> LockCall::ask(rpc::Session::Client& session) {
  auto request = session.lockRequest();
  encodeLock(lock_, request.initLock());
  request.setWait(wait_->number);
  request.setGiveUp(wait_->givenUp);
  return request.send().then([](auto response) -> int { return response.getError(); });
}

// To give up is to drop the call and to ask once more: the server then says which was first, the
// grant or this.
kj::Promise<void> LockCall::send(rpc::Session::Client& session) {
  if (!answer_) co_return co_await undo(session);
  int error = kDropped;
  if (!wait_->givenUp) {
    auto dropped = kj::newPromiseAndFulfiller<int>();
    wait_->drop = kj::mv(dropped.fulfiller);
    error = co_await ask(session).exclusiveJoin(kj::mv(dropped.promise));
  }
  if (error == kDropped) error = co_await ask(session);
  answer(error);
}

kj::Promise<void> LockCall::undo(rpc::Session::Client& session) {
  if (wait_->number != 0) {
    wait_->givenUp = true;
    co_await ask(session);
  }
  auto request = session.unlockRequest();
  encodeLock(lock_, request.initLock());
  co_await request.send().ignoreResult();
}

void LockCall::answer(int error) {
  if (auto answer = std::exchange(answer_, nullptr)) answer(statusOf(error));
}

void LockCall::giveUp(LockWait& wait) {
  wait.givenUp = true;
  if (wait.drop.get() != nullptr) wait.drop->fulfill(kj::cp(kDropped));
}

UnlockCall::UnlockCall(const FileLock& lock, Answer<Done> answer)
    : lock_(lock), answer_(std::move(answer)) {
  lingers = true;
}

kj::Promise<void> UnlockCall::send(rpc::Session::Client& session) {
  auto request = session.unlockRequest();
  encodeLock(lock_, request.initLock());
  auto response = co_await request.send();
  fail(response.getError());
}

void UnlockCall::fail(int code) {
  if (auto answer = std::exchange(answer_, nullptr)) answer(statusOf(code));
}

}  // namespace trainfs::client
