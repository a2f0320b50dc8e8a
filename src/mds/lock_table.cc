#include "mds/lock_table.h"

#include <algorithm>

namespace trainfs::mds {

// ---- locking ----

Status LockTable::tryLock(const LockRequest& request) {
  if (isFull(request.session)) return Errno(ENOLCK);
  if (!makeRoom(request)) return Errno(EAGAIN);
  grant(request);
  return Done{};
}

Result<bool> LockTable::lock(const LockRequest& request, LockTicket ticket) {
  if (isFull(request.session)) return Errno(ENOLCK);
  if (makeRoom(request)) {
    grant(request);
    return true;
  }
  if (counts_[request.session].waits >= kLockWaitsPerSessionMax) return Errno(ENOLCK);
  if (closesCircle(request)) return Errno(EDEADLK);
  waits_.emplace(ticket, request);
  waitsOf_[ownerOf(request)].insert(ticket);
  ++counts_[request.session].waits;
  files_[placeOf(request)].waits.insert(ticket);
  return false;
}

// Locking and unlocking a range each may make one lock into three.
bool LockTable::isFull(SessionId session) const {
  auto count = counts_.find(session);
  size_t own = count == counts_.end() ? 0 : count->second.locks;
  return own + 2 > kLocksPerSessionMax || locks_ + 2 > kLocksMax;
}

// Another mode of flock(2) is no change of a lock: the old one goes first, and whoever waited for
// that goes ahead. Otherwise two who share a lock and both want it alone would wait for ever.
bool LockTable::makeRoom(const LockRequest& request) {
  if (isFree(request)) return true;
  if (request.lock.kind == LockKind::kRecord) return false;
  unlock(request);
  return isFree(request);
}

void LockTable::grant(const LockRequest& request) {
  give(request);
  wake(placeOf(request));  // it may be less than the owner had
  breakCircles(placeOf(request), ownerOf(request));
}

void LockTable::give(const LockRequest& request) {
  auto place = placeOf(request);
  auto owner = ownerOf(request);
  change(place, owner, request.lock, true);
  files_[place].held[owner].process = request.lock.process;
}

void LockTable::unlock(const LockRequest& request) {
  auto place = placeOf(request);
  change(place, ownerOf(request), request.lock, false);
  wake(place);
  forgetIfEmpty(place);
}

void LockTable::change(Place place, Owner owner, const FileLock& lock, bool locks) {
  if (!locks && !files_.contains(place)) return;
  auto& file = files_[place];
  if (!locks && !file.held.contains(owner)) return;
  auto& ranges = file.held[owner].ranges;
  auto before = ranges.size();
  if (locks)
    ranges.lock(lock.range, lock.mode);
  else
    ranges.unlock(lock.range);
  auto gained = ranges.size() - before;  // modulo 2^64, as the sums below
  locks_ += gained;
  counts_[owner.session].locks += gained;
  if (ranges.empty()) file.held.erase(owner);
}

// ---- waiting ----

void LockTable::endWait(LockTicket ticket) {
  auto wait = waits_.find(ticket);
  if (wait == waits_.end()) return;
  auto owner = ownerOf(wait->second);
  auto& tickets = waitsOf_[owner];
  tickets.erase(ticket);
  if (tickets.empty()) waitsOf_.erase(owner);
  --counts_[owner.session].waits;
  files_[placeOf(wait->second)].waits.erase(ticket);
  waits_.erase(wait);
}

void LockTable::cancel(LockTicket ticket) {
  auto wait = waits_.find(ticket);
  if (wait == waits_.end()) return;
  auto place = placeOf(wait->second);
  endWait(ticket);
  forgetIfEmpty(place);
}

// Grants what can be granted, and again when a grant has made more possible: it may replace a
// stronger lock of its owner.
void LockTable::wake(Place place) {
  auto file = files_.find(place);
  if (file == files_.end() || file->second.waits.empty()) return;
  std::set<Owner> gained;
  for (bool again = true; again;) {
    again = false;
    auto waits = file->second.waits;
    for (auto ticket : waits) {
      auto request = waits_.at(ticket);
      if (!isFree(request)) continue;
      endWait(ticket);
      ended_.push_back({ticket, 0});
      give(request);
      gained.insert(ownerOf(request));
      again = true;
    }
  }
  for (auto& owner : gained) breakCircles(place, owner);
}

// ---- circles ----

std::vector<LockTable::Owner> LockTable::blockers(const LockRequest& request) const {
  std::vector<Owner> blockers;
  auto file = files_.find(placeOf(request));
  if (file == files_.end()) return blockers;
  auto self = ownerOf(request);
  for (auto& [owner, held] : file->second.held)
    if (owner != self && held.ranges.conflict(request.lock.range, request.lock.mode))
      blockers.push_back(owner);
  return blockers;
}

// Whether somebody whom this request has to wait for waits, at any remove, for its owner.
bool LockTable::closesCircle(const LockRequest& request) const {
  if (request.lock.kind != LockKind::kRecord) return false;
  auto self = ownerOf(request);
  std::set<Owner> seen;
  auto next = blockers(request);
  while (!next.empty()) {
    auto owner = next.back();
    next.pop_back();
    if (owner == self) return true;
    if (seen.size() >= kCircleMax || !seen.insert(owner).second) continue;
    auto waits = waitsOf_.find(owner);
    if (waits == waitsOf_.end()) continue;
    for (auto ticket : waits->second)
      for (auto& blocker : blockers(waits_.at(ticket))) next.push_back(blocker);
  }
  return false;
}

// The owner has been given something while another of its threads waits: who waits here may wait
// for it now.
void LockTable::breakCircles(Place place, Owner owner) {
  if (place.kind != LockKind::kRecord || !waitsOf_.contains(owner)) return;
  auto waits = files_[place].waits;
  for (auto ticket : waits) {
    if (!closesCircle(waits_.at(ticket))) continue;
    endWait(ticket);
    ended_.push_back({ticket, EDEADLK});
  }
}

// ---- all of a session; questions ----

// Looks at every file with locks: sessions end rarely.
void LockTable::drop(SessionId session) {
  std::vector<Place> changed;
  for (auto& [place, file] : files_) {
    bool any = false;
    std::erase_if(file.held, [&](auto& entry) {
      if (entry.first.session != session) return false;
      locks_ -= entry.second.ranges.size();
      return any = true;
    });
    std::vector<LockTicket> own;
    for (auto ticket : file.waits)
      if (waits_.at(ticket).session == session) own.push_back(ticket);
    for (auto ticket : own) endWait(ticket);
    if (any || !own.empty()) changed.push_back(place);
  }
  counts_.erase(session);
  for (auto place : changed) {
    wake(place);
    forgetIfEmpty(place);
  }
}

std::optional<LockRequest> LockTable::conflict(const LockRequest& request) const {
  auto file = files_.find(placeOf(request));
  if (file == files_.end()) return std::nullopt;
  auto self = ownerOf(request);
  for (auto& [owner, held] : file->second.held) {
    if (owner == self) continue;
    auto lock = held.ranges.conflict(request.lock.range, request.lock.mode);
    if (!lock) continue;
    return LockRequest{owner.session,
                       {.inode = request.lock.inode,
                        .kind = request.lock.kind,
                        .owner = owner.number,
                        .range = lock->range,
                        .mode = lock->mode,
                        .process = held.process}};
  }
  return std::nullopt;
}

bool LockTable::wantedFrom(SessionId session) const {
  return std::any_of(waits_.begin(), waits_.end(), [&](auto& wait) {
    if (wait.second.session == session) return false;
    auto blocking = blockers(wait.second);
    return std::any_of(blocking.begin(), blocking.end(),
                       [&](auto& owner) { return owner.session == session; });
  });
}

void LockTable::forgetIfEmpty(Place place) {
  auto file = files_.find(place);
  if (file != files_.end() && file->second.held.empty() && file->second.waits.empty())
    files_.erase(file);
}

}  // namespace trainfs::mds
