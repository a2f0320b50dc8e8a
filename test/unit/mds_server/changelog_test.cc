// The changelog over the wire, and how the server looks after its users.
#include <catch2/catch_test_macros.hpp>

#include "fixture.h"
#include "mds/changelog.h"

using namespace trainfs;
using namespace trainfs::mds;
using namespace trainfs::mds::test;

namespace {

// A tool: it has a connection and no session.
struct Tool {
  explicit Tool(Fixture& fixture) : fixture(fixture), connection(fixture) {}

  uint32_t add(const std::string& name, int error = 0) {
    auto request = connection.mds.registerChangelogRequest();
    request.setName(name.c_str());
    auto results = request.send().wait(fixture.io.waitScope);
    CHECK(results.getError() == error);
    return results.getUser();
  }
  int remove(uint32_t user) {
    auto request = connection.mds.deregisterChangelogRequest();
    request.setUser(user);
    return request.send().wait(fixture.io.waitScope).getError();
  }
  int clear(uint32_t user, uint64_t upTo) {
    auto request = connection.mds.clearChangelogRequest();
    request.setUser(user);
    request.setUpTo(upTo);
    return request.send().wait(fixture.io.waitScope).getError();
  }
  std::vector<std::string> names(uint64_t first = 0, uint32_t most = 1000) {
    auto request = connection.mds.changelogRequest();
    request.setFirst(first);
    request.setMost(most);
    auto results = request.send().wait(fixture.io.waitScope);
    std::vector<std::string> names;
    for (auto change : results.getChanges()) names.push_back(change.getName().cStr());
    return names;
  }
  size_t users() {
    return connection.mds.changelogUsersRequest()
        .send()
        .wait(fixture.io.waitScope)
        .getUsers()
        .size();
  }

  Fixture& fixture;
  Connection connection;
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a tool follows what clients change, also over a restart of the MDS") {
  Fixture fixture;
  auto tool = std::make_unique<Tool>(fixture);
  auto user = tool->add("indexer");
  REQUIRE(user == 1);
  tool->add("indexer", EEXIST);
  Client client(fixture, "a");
  client.open();
  for (auto name : {"x", "y", "z"}) client.create(name);
  CHECK(tool->names() == Names{"x", "y", "z"});
  CHECK(tool->names(2, 1) == Names{"y"});
  CHECK(tool->names(4).empty());
  CHECK(tool->clear(user, 4) == EINVAL);
  CHECK(tool->clear(user + 1, 1) == ENOENT);

  tool.reset();
  fixture.restart();
  tool = std::make_unique<Tool>(fixture);
  CHECK(tool->users() == 1);
  CHECK(tool->names() == Names{"x", "y", "z"});
  REQUIRE(tool->clear(user, 2) == 0);
  fixture.until([&] { return tool->names() == Names{"z"}; });
  REQUIRE(tool->remove(user) == 0);
  CHECK(tool->remove(user) == ENOENT);
  fixture.until([&] { return tool->names().empty(); });
}

TEST_CASE("a user of the changelog that falls too far behind is deregistered") {
  Fixture fixture;
  fixture.options.changelogRecordsMax = 3;
  fixture.restart();
  Tool tool(fixture);
  auto slow = tool.add("slow"), quick = tool.add("quick");
  Client client(fixture, "a");
  client.open();
  for (auto name : {"x", "y", "z"}) client.create(name);
  REQUIRE(tool.clear(quick, 3) == 0);
  CHECK(tool.users() == 2);
  client.create("one too many");
  fixture.advance(fixture.options.changelogPause);
  fixture.until([&] { return tool.users() == 1; });
  CHECK(tool.clear(slow, 4) == ENOENT);
  fixture.until([&] { return tool.names() == Names{"one too many"}; });
}

TEST_CASE("what was cleared before the MDS died is erased by its next start") {
  Fixture fixture;
  {
    Tool tool(fixture);
    auto user = tool.add("");
    Client client(fixture, "a");
    client.open();
    client.create("x");
    REQUIRE(tool.clear(user, 1) == 0);
    fixture.until([&] { return tool.names().empty(); });
  }
  fixture.stop();
  auto txn = fixture.store.begin();
  txn->put("K" + std::string(7, '\0') + "\1", encodeChange({.name = "left"}));
  txn->commit();
  fixture.start();
  Tool tool(fixture);
  fixture.until([&] { return tool.names().empty(); });
}
