#include "changelog_client.h"

#include <functional>

#include "mds_connection.h"

namespace trainfs::tfs {
namespace {

constexpr uint32_t kChangesAtOnce = 1024;

Change decode(rpc::Change::Reader in) {
  auto time = in.getTime();
  return {.index = in.getIndex(),
          .type = in.getType(),
          .time = {time.getSeconds(), time.getNanoseconds()},
          .lastLink = in.getLastLink(),
          .hasOwner = in.getHasOwner(),
          .uid = in.getUid(),
          .gid = in.getGid(),
          .target = {in.getTarget()},
          .parent = {in.getParent()},
          .source = {in.getSource()},
          .sourceParent = {in.getSourceParent()},
          .name = in.getName().cStr(),
          .sourceName = in.getSourceName().cStr(),
          .xattr = in.getXattr().cStr()};
}

ChangelogAnswer ask(const Mount& mount, uint16_t mdt,
                    const std::function<void(MdsConnection&, ChangelogAnswer&)>& question) {
  ChangelogAnswer answer;
  answer.error = askServers(mount, [&](MdsConnection& connection, const MdsAddress&) {
    KJ_REQUIRE(connection.mdtIndex() == mdt, "it serves another MDT", connection.mdtIndex());
    question(connection, answer);
  });
  return answer;
}

}  // namespace

ChangelogAnswer readChanges(const Mount& mount, uint16_t mdt, uint64_t first) {
  return ask(mount, mdt, [&](MdsConnection& connection, ChangelogAnswer& answer) {
    auto request = connection.mds().changelogRequest();
    request.setFirst(first);
    request.setMost(kChangesAtOnce);
    auto results = connection.call(request);
    KJ_REQUIRE(results.getChanges().size() <= kChangesAtOnce, "it sent more than it was asked for");
    for (auto change : results.getChanges()) answer.changes.push_back(decode(change));
    answer.last = results.getLast();
  });
}

ChangelogAnswer listUsers(const Mount& mount, uint16_t mdt) {
  return ask(mount, mdt, [&](MdsConnection& connection, ChangelogAnswer& answer) {
    auto results = connection.call(connection.mds().changelogUsersRequest());
    for (auto user : results.getUsers())
      answer.users.push_back(
          {user.getId(), user.getName().cStr(), user.getCleared(), user.getIdleSeconds()});
    answer.last = results.getLast();
  });
}

ChangelogAnswer registerUser(const Mount& mount, uint16_t mdt, const std::string& name) {
  return ask(mount, mdt, [&](MdsConnection& connection, ChangelogAnswer& answer) {
    auto request = connection.mds().registerChangelogRequest();
    request.setName(name.c_str());
    auto results = connection.call(request);
    answer.code = results.getError();
    answer.user = results.getUser();
  });
}

ChangelogAnswer deregisterUser(const Mount& mount, uint16_t mdt, uint32_t user) {
  return ask(mount, mdt, [&](MdsConnection& connection, ChangelogAnswer& answer) {
    auto request = connection.mds().deregisterChangelogRequest();
    request.setUser(user);
    answer.code = connection.call(request).getError();
  });
}

ChangelogAnswer clearChanges(const Mount& mount, uint16_t mdt, uint32_t user, uint64_t upTo) {
  return ask(mount, mdt, [&](MdsConnection& connection, ChangelogAnswer& answer) {
    auto request = connection.mds().clearChangelogRequest();
    request.setUser(user);
    request.setUpTo(upTo);
    answer.code = connection.call(request).getError();
  });
}

}  // namespace trainfs::tfs
