#include "mds/lock_service.h"

#include <kj/debug.h>

namespace trainfs::mds {

namespace {

kj::Exception waitIsOver() {
  return KJ_EXCEPTION(DISCONNECTED, "this wait has ended, or goes on over another call");
}

}  // namespace

kj::Promise<void> LockService::settled() {
  ++unsettled_;
  KJ_DEFER(--unsettled_);
  while (!sessions_.allKnown()) co_await sessions_.changed();
}

int LockService::tryLock(const Session& session, const FileLock& lock) {
  auto locked = table_.tryLock({session.id, lock});
  answerEnded();
  return locked.errnoOrZero();
}

std::optional<LockRequest> LockService::conflict(const Session& session,
                                                 const FileLock& lock) const {
  return table_.conflict({session.id, lock});
}

kj::Promise<int> LockService::lock(std::shared_ptr<Session> session, FileLock lock,
                                   uint64_t number) {
  auto& own = tickets_[session->id];
  if (!own.contains(number) && own.size() >= kLockWaitsPerSessionMax) co_return ENOLCK;
  auto ticket = ticketOf(session->id, number);
  auto call = ++waits_.at(ticket).call;
  co_await settled();
  auto wait = waits_.find(ticket);
  if (wait == waits_.end() || wait->second.call != call) kj::throwFatalException(waitIsOver());
  if (!table_.waits(ticket)) {
    auto granted = table_.lock({session->id, lock}, ticket);
    if (!granted || *granted) forget(ticket);
    answerEnded();
    if (!granted || *granted) co_return granted.errnoOrZero();
  }
  auto answer = kj::newPromiseAndFulfiller<int>();
  waits_.at(ticket).answer = kj::mv(answer.fulfiller);
  co_return co_await answer.promise;
}

// Once it does not wait any more, the same lock can be had at once exactly if it had been granted.
kj::Promise<int> LockService::giveUp(std::shared_ptr<Session> session, FileLock lock,
                                     uint64_t number) {
  auto& own = tickets_[session->id];
  if (auto found = own.find(number); found != own.end()) {
    auto ticket = found->second;
    table_.cancel(ticket);
    forget(ticket);
  }
  if (!sessions_.allKnown()) {
    if (lock.kind == LockKind::kWhole) unlock(*session, lock);  // as if it had been tried
    co_return EINTR;
  }
  auto locked = table_.tryLock({session->id, lock});
  answerEnded();
  co_return locked.errnoOrZero() == EAGAIN ? EINTR : locked.errnoOrZero();
}

void LockService::unlock(const Session& session, const FileLock& lock) {
  table_.unlock({session.id, lock});
  answerEnded();
}

// ---- waits ----

LockTicket LockService::ticketOf(SessionId session, uint64_t number) {
  auto [entry, isNew] = tickets_[session].try_emplace(number, lastTicket_ + 1);
  if (isNew) waits_.emplace(++lastTicket_, Wait{.session = session, .number = number});
  return entry->second;
}

void LockService::forget(LockTicket ticket) {
  auto wait = waits_.find(ticket);
  if (auto& answer = wait->second.answer; answer.get() != nullptr) answer->reject(waitIsOver());
  tickets_[wait->second.session].erase(wait->second.number);
  waits_.erase(wait);
}

void LockService::answerEnded() {
  for (auto [ticket, error] : table_.takeEnded()) {
    auto answer = kj::mv(waits_.at(ticket).answer);
    forget(ticket);
    if (answer.get() != nullptr) answer->fulfill(kj::mv(error));
  }
}

// ---- sessions ----

bool LockService::reclaim(const Session& session, const std::vector<FileLock>& locks) {
  for (auto& lock : locks)
    if (!table_.restore({session.id, lock})) return false;
  return true;
}

void LockService::drop(SessionId session) {
  table_.drop(session);
  auto own = tickets_[session];
  for (auto [number, ticket] : own) forget(ticket);
  tickets_.erase(session);
  answerEnded();
}

bool LockService::wantedFrom(const Session& session) const {
  return session.known ? table_.wantedFrom(session.id) : unsettled_ != 0;
}

}  // namespace trainfs::mds
