// Users of the changelog come, say what they have seen, and go; what nobody waits for goes, too.
#include <algorithm>

#include "mds/changelog.h"
#include "mds/keys.h"
#include "mds/op_run.h"

namespace trainfs::mds {
namespace {

auto findUser(ChangelogUsers& all, uint32_t id) {
  return std::find_if(all.users.begin(), all.users.end(),
                      [id](const ChangelogUser& user) { return user.id == id; });
}

}  // namespace

// EEXIST: the name is taken; so a registration that is sent again, its answer lost, makes no second
// user that nobody knows of. EMFILE: too many.
Result<Outcome> run(const RegisterChangelogOp& op, const Command& command, Txn& txn) {
  if (op.name.size() > kChangelogNameBytesMax) return Errno(ENAMETOOLONG);
  auto all = changelogUsers(txn);
  for (auto& user : all.users)
    if (!op.name.empty() && user.name == op.name) return Errno(EEXIST);
  if (all.users.size() >= kChangelogUsersMax) return Errno(EMFILE);
  uint32_t id = all.nextId++;
  all.users.push_back(
      {.id = id, .name = op.name, .cleared = lastChange(txn), .lastUse = command.now});
  putChangelogUsers(txn, all);
  return Outcome{.value = id};
}

// ENOENT: no such user.
Result<Outcome> run(const DeregisterChangelogOp& op, const Command&, Txn& txn) {
  auto all = changelogUsers(txn);
  auto user = findUser(all, op.user);
  if (user == all.users.end()) return Errno(ENOENT);
  all.users.erase(user);
  putChangelogUsers(txn, all);
  return Outcome{};
}

// ENOENT: no such user. EINVAL: beyond the newest record, as Lustre.
Result<Outcome> run(const ClearChangelogOp& op, const Command& command, Txn& txn) {
  auto all = changelogUsers(txn);
  auto user = findUser(all, op.user);
  if (user == all.users.end()) return Errno(ENOENT);
  auto last = lastChange(txn);
  if (op.upTo > last) return Errno(EINVAL);
  user->cleared = std::max(user->cleared, op.upTo == 0 ? last : op.upTo);
  user->lastUse = command.now;
  putChangelogUsers(txn, all);
  return Outcome{};
}

Result<Outcome> run(const TrimChangelogOp&, const Command&, Txn& txn) {
  auto cleared = clearedByAll(txn, changelogUsers(txn));
  std::vector<std::string> keys;
  bool more = false;
  txn.scan(changesPrefix(), changesPrefix(), [&](std::string_view key, std::string_view) {
    if (indexOfChangeKey(key) > cleared) return false;
    more = keys.size() == kTrimmedAtOnce;
    if (!more) keys.emplace_back(key);
    return !more;
  });
  for (auto& key : keys) txn.erase(key);
  return Outcome{.value = more ? uint64_t{1} : 0};
}

}  // namespace trainfs::mds
