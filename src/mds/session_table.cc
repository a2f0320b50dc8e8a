#include "mds/session_table.h"

#include <algorithm>

namespace trainfs::mds {

std::shared_ptr<Session> SessionTable::add(const SessionRecord& record, kj::TimePoint now) {
  auto session = std::make_shared<Session>();
  session->id = record.id;
  session->epoch = record.epoch;
  session->clientName = record.clientName;
  session->lastRenewal = now;
  sessions_[record.id.value] = session;
  unknown_.insert(record.id);
  return session;
}

std::shared_ptr<Session> SessionTable::find(SessionId id) const {
  auto found = sessions_.find(id.value);
  return found == sessions_.end() ? nullptr : found->second;
}

void SessionTable::erase(SessionId id) {
  auto session = find(id);
  if (!session) return;
  replaceOpens(*session, {});
  sessions_.erase(id.value);
  unknown_.erase(id);
  tookCaches(*session);
}

std::vector<std::shared_ptr<Session>> SessionTable::all() const {
  std::vector<std::shared_ptr<Session>> all;
  all.reserve(sessions_.size());
  for (auto& [id, session] : sessions_) all.push_back(session);
  return all;
}

void SessionTable::giveCaches(Session& session) {
  session.mayCache = true;
  cacheHolder_ = session.id;
}

void SessionTable::tookCaches(Session& session) {
  session.mayCache = false;
  session.askedForCaches = 0;
  if (cacheHolder_ == session.id) cacheHolder_ = {};
  notify();
}

std::shared_ptr<Session> SessionTable::mayHaveCached(SessionId asker) const {
  if (auto holder = cacheHolder(); holder && holder->id != asker) return holder;
  for (auto id : unknown_)
    if (id != asker) return find(id);
  return nullptr;
}

std::shared_ptr<Session> SessionTable::cacheHolder() const {
  return find(cacheHolder_);
}

bool SessionTable::opened(Session& session, OpenedFile file) {
  if (find(session.id).get() != &session) return true;  // ended meanwhile: nothing to remember
  if (session.opens.size() >= kOpensPerSessionMax && !session.opens.contains(file.inode))
    return false;
  auto [entry, isNew] = session.opens.try_emplace(file.inode, false);
  entry->second |= file.writing;
  if (isNew) openers_[file.inode].push_back(session.id);
  return true;
}

void SessionTable::released(Session& session, InodeId inode) {
  if (session.opens.erase(inode) != 0) forgetOpener(inode, session.id);
}

void SessionTable::known(Session& session, const std::vector<OpenedFile>& opens) {
  replaceOpens(session, opens);
  session.known = true;
  unknown_.erase(session.id);
  notify();
}

void SessionTable::replaceOpens(Session& session, const std::vector<OpenedFile>& opens) {
  for (auto& [inode, writing] : session.opens) forgetOpener(inode, session.id);
  session.opens.clear();
  for (auto& file : opens) opened(session, file);
}

std::vector<SessionId> SessionTable::holders(InodeId inode) const {
  std::vector<SessionId> holders;
  if (auto found = openers_.find(inode); found != openers_.end()) holders = found->second;
  holders.insert(holders.end(), unknown_.begin(), unknown_.end());
  return holders;
}

void SessionTable::forgetOpener(InodeId inode, SessionId session) {
  auto found = openers_.find(inode);
  if (found == openers_.end()) return;
  std::erase(found->second, session);
  if (found->second.empty()) openers_.erase(found);
}

}  // namespace trainfs::mds
