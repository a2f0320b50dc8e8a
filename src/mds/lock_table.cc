#include "mds/lock_table.h"

#include <algorithm>

namespace trainfs::mds {

// ---- locking ----

Status LockTable::tryLock(const LockRequest& request) {
  if (has(request)) return Done{};
  if (isFull(request.session)) return Errno(ENOLCK);
  if (!makeRoom(request)) return Errno(EAGAIN);
  grant(request);
  return Done{};
}

Result<bool> LockTable::lock(const LockRequest& request, LockTicket ticket) {
  if (has(request)) return true;
  if (isFull(request.session)) return Errno(ENOLCK);
  if (makeRoom(request)) {
    grant(request);
    return true;
  }
  if (counts_[request.session].waits >= kLockWaitsPerSessionMax) return Errno(ENOLCK);
  size_t steps = kCircleStepsMax;
  if (closesCircle(request, steps)) return Errno(EDEADLK);
  waits_.emplace(ticket, request);
  waitsOf_[ownerOf(request)].insert(ticket);
  ++counts_[request.session].waits;
  files_[placeOf(request)].waits.insert(ticket);
  return false;
}

bool LockTable::restore(const LockRequest& request) {
  if (!isFree(request)) return false;
  give(request);
  return true;
}

// A call that is sent again may find its lock granted, and then there need be no room.
bool LockTable::has(const LockRequest& request) const {
  auto file = files_.find(placeOf(request));
  if (file == files_.end()) return false;
  auto held = file->second.held.find(ownerOf(request));
  return held != file->second.held.end() &&
         held->second.ranges.has(request.lock.range, request.lock.mode);
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
  size_t steps = kCircleStepsMax;
  breakCircles(placeOf(request), ownerOf(request), steps);
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
  if (ranges.anyExclusive())
    file.exclusive.insert(owner);
  else
    file.exclusive.erase(owner);
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

// A lock of the whole file that is not shared keeps all others out, however many wait: only another
// thread of its owner may change it.
bool LockTable::nobodyCanPass(const File& file) const {
  if (file.exclusive.empty()) return false;
  auto& owner = *file.exclusive.begin();
  return owner.kind != LockKind::kRecord && !waitsOf_.contains(owner);
}

// Grants what can be granted, and again when a grant has made more possible: it may replace a
// stronger lock of its owner.
void LockTable::wake(Place place) {
  auto found = files_.find(place);
  if (found == files_.end() || found->second.waits.empty()) return;
  auto& file = found->second;
  std::set<Owner> gained;
  for (bool again = true; again;) {
    again = false;
    for (auto at = file.waits.begin(); at != file.waits.end() && !nobodyCanPass(file);) {
      auto ticket = *at++;  // of the waits only this one may end here
      auto request = waits_.at(ticket);
      if (!isFree(request)) continue;
      endWait(ticket);
      ended_.push_back({ticket, 0});
      give(request);
      gained.insert(ownerOf(request));
      again = true;
    }
  }
  size_t steps = kCircleStepsMax;
  for (auto& owner : gained) breakCircles(place, owner, steps);
}

// ---- circles ----

std::vector<LockTable::Owner> LockTable::blockers(const LockRequest& request, size_t& steps) const {
  std::vector<Owner> blockers;
  auto file = files_.find(placeOf(request));
  if (file == files_.end()) return blockers;
  auto self = ownerOf(request);
  for (auto& [owner, held] : file->second.held) {
    if (steps == 0) break;
    --steps;
    if (owner != self && held.ranges.conflict(request.lock.range, request.lock.mode))
      blockers.push_back(owner);
  }
  return blockers;
}

// Whether somebody whom this request has to wait for waits, at any remove, for its owner.
bool LockTable::closesCircle(const LockRequest& request, size_t& steps) const {
  if (request.lock.kind != LockKind::kRecord) return false;
  auto self = ownerOf(request);
  std::set<Owner> seen;
  auto next = blockers(request, steps);
  while (!next.empty()) {
    auto owner = next.back();
    next.pop_back();
    if (owner == self) return true;
    auto waits = waitsOf_.find(owner);
    if (waits == waitsOf_.end() || !seen.insert(owner).second) continue;
    for (auto ticket : waits->second)
      for (auto& blocker : blockers(waits_.at(ticket), steps)) next.push_back(blocker);
  }
  return false;
}

// The owner has been given something while another of its threads waits: who waits here may wait
// for it now.
void LockTable::breakCircles(Place place, Owner owner, size_t& steps) {
  if (place.kind != LockKind::kRecord || !waitsOf_.contains(owner)) return;
  auto& waits = files_[place].waits;
  for (auto at = waits.begin(); at != waits.end() && steps != 0;) {
    auto ticket = *at++;
    if (!closesCircle(waits_.at(ticket), steps)) continue;
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
      file.exclusive.erase(entry.first);
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

// Sharing looks only at those who do not: thousands may share a file.
std::optional<LockRequest> LockTable::conflict(const LockRequest& request) const {
  auto found = files_.find(placeOf(request));
  if (found == files_.end()) return std::nullopt;
  auto& file = found->second;
  auto self = ownerOf(request);
  auto of = [&](const Owner& owner, const Held& held) -> std::optional<LockRequest> {
    if (owner == self) return std::nullopt;
    auto lock = held.ranges.conflict(request.lock.range, request.lock.mode);
    if (!lock) return std::nullopt;
    return LockRequest{owner.session,
                       {.inode = request.lock.inode,
                        .kind = request.lock.kind,
                        .owner = owner.number,
                        .range = lock->range,
                        .mode = lock->mode,
                        .process = held.process}};
  };
  if (request.lock.mode == LockMode::kShared) {
    for (auto& owner : file.exclusive)
      if (auto lock = of(owner, file.held.at(owner))) return lock;
  } else {
    for (auto& [owner, held] : file.held)
      if (auto lock = of(owner, held)) return lock;
  }
  return std::nullopt;
}

bool LockTable::wantedFrom(SessionId session) const {
  for (auto& [ticket, request] : waits_) {
    if (request.session == session) continue;
    auto& held = files_.at(placeOf(request)).held;
    for (auto at = held.lower_bound({session, request.lock.kind, 0});
         at != held.end() && at->first.session == session; ++at)
      if (at->second.ranges.conflict(request.lock.range, request.lock.mode)) return true;
  }
  return false;
}

void LockTable::forgetIfEmpty(Place place) {
  auto file = files_.find(place);
  if (file != files_.end() && file->second.held.empty() && file->second.waits.empty())
    files_.erase(file);
}

}  // namespace trainfs::mds
