#include "fixture.h"

namespace trainfs::mds {
namespace {

template <typename StoreType>
struct Slots : Fixture<StoreType> {
  SessionId client = this->session();

  Command request(Operation op, uint64_t sequence, uint16_t slot = 0) {
    auto command = this->command(std::move(op), client);
    command.slot = slot;
    command.sequence = sequence;
    return command;
  }
};

}  // namespace

TEMPLATE_TEST_CASE("a repeated request is executed once and answered alike", "[mds]", MemStore,
                   LmdbStore) {
  Slots<TestType> fs;
  auto first = fs.request(fs.creation(kRootInode, "a", S_IFREG | 0644), 1);
  auto outcome = fs.applyAll(first);
  REQUIRE(outcome.error == 0);
  auto before = fs.content();
  auto again = first;
  again.now.seconds += 100;
  std::get<CreateOp>(again.op).newInode.value += 100;  // a new leader chooses anew
  CHECK(fs.applyAll(again) == outcome);
  CHECK(fs.content() == before);
  // Also when what it made is gone, and for failures.
  REQUIRE(fs.error(UnlinkOp{kRootInode, "a", {}}) == 0);
  CHECK(fs.applyAll(again) == outcome);
  CHECK(fs.lookupError(kRootInode, "a") == ENOENT);
  auto failing = fs.request(UnlinkOp{kRootInode, "b", {}}, 2);
  CHECK(fs.applyAll(failing).error == ENOENT);
  fs.file(kRootInode, "b");
  CHECK(fs.applyAll(failing).error == ENOENT);
  CHECK(fs.applyAll(fs.request(UnlinkOp{kRootInode, "b", {}}, 3)).error == 0);
}

TEMPLATE_TEST_CASE("an older sequence ends the session, an unknown session is stale", "[mds]",
                   MemStore, LmdbStore) {
  Slots<TestType> fs;
  REQUIRE(fs.applyAll(fs.request(fs.creation(kRootInode, "a", S_IFREG | 0644), 5)).error == 0);
  auto before = fs.content();
  CHECK(fs.applyAll(fs.request(UnlinkOp{kRootInode, "a", {}}, 4)) ==
        Outcome{.error = ESTALE, .value = 1});
  CHECK(fs.applyAll(fs.request(UnlinkOp{kRootInode, "a", {}}, 6, kSlotsPerSession)).error ==
        EINVAL);
  auto unknown = fs.request(UnlinkOp{kRootInode, "a", {}}, 6);
  unknown.session = {999};
  CHECK(fs.applyAll(unknown) == Outcome{.error = ESTALE});
  unknown.slot = kNoSlot;
  CHECK(fs.applyAll(unknown) == Outcome{.error = ESTALE});
  CHECK(fs.content() == before);
  // Slots are independent.
  CHECK(fs.applyAll(fs.request(UnlinkOp{kRootInode, "a", {}}, 1, 255)).error == 0);
}

TEMPLATE_TEST_CASE("sessions are counted, and end with all they have", "[mds]", MemStore,
                   LmdbStore) {
  Slots<TestType> fs;
  auto second = fs.session();
  CHECK(second.value == fs.client.value + 1);
  auto all = sessions(*fs.view());
  REQUIRE(all.size() == 2);
  CHECK(all[0].id == fs.client);
  CHECK(all[0].clientName == "test");
  CHECK(all[0].epoch == 1);
  auto before = fs.content();
  auto file = fs.file(kRootInode, "file");
  REQUIRE(fs.applyAll(fs.request(OpenWriteOp{file}, 1)).error == 0);
  REQUIRE(fs.error(OpenWriteOp{file}, second) == 0);
  CHECK(writersOf(*fs.view(), file) == std::vector{fs.client, second});
  REQUIRE(fs.error(EndSessionOp{fs.client}) == 0);
  CHECK(writersOf(*fs.view(), file) == std::vector{second});
  CHECK(fs.error(ReportOp{.inode = file, .sizeBytes = 1}, fs.client) == ESTALE);
  CHECK(fs.error(EndSessionOp{fs.client}) == 0);
  CHECK(sessions(*fs.view()).size() == 1);
  auto third = fs.session();
  CHECK(third.value == second.value + 1);
  CHECK(sessions(*fs.view())[1].epoch == 2);
  CHECK(fs.error(OpenSessionOp{std::string(5000, 'x')}) == EINVAL);
  REQUIRE(fs.error(UnlinkOp{kRootInode, "file", {}}) == 0);
  REQUIRE(fs.error(ReapedOp{file, 1}) == 0);
  CHECK(fs.content().size() == before.size());
}

TEMPLATE_TEST_CASE("a session may end itself in a slot", "[mds]", MemStore, LmdbStore) {
  Slots<TestType> fs;
  CHECK(fs.applyAll(fs.request(EndSessionOp{fs.client}, 1)).error == 0);
  CHECK(sessions(*fs.view()).empty());
  for (auto& [key, value] : fs.content()) CHECK(key[0] != 'S');
}

TEMPLATE_TEST_CASE("an OST index belongs to one target", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  RegisterOstOp op{.index = 3, .uuid = "u", .host = "h", .ports = {1, 2}, .start = 1};
  CHECK(fs.run(op) == Outcome{.value = 1});
  op.host = "elsewhere";
  CHECK(fs.run(op) == Outcome{.value = 1});
  op.uuid = "v";
  CHECK(fs.error(op) == EEXIST);
  op.index = 1;
  CHECK(fs.error(op) == 0);
  auto all = osts(*fs.view());
  REQUIRE(all.size() == 2);
  CHECK(all[0].index == 1);
  CHECK(all[1].uuid == "u");
  CHECK(all[1].host == "elsewhere");
  CHECK(all[1].ports == std::vector<uint16_t>{1, 2});
  CHECK(all[1].chainVersion == 1);
  op.index = 65535;
  CHECK(fs.error(op) == EINVAL);
  op.index = 2;
  op.ports.clear();
  CHECK(fs.error(op) == EINVAL);
}

TEMPLATE_TEST_CASE("a formatted MDT has a root and knows its name", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  CHECK(fsname(*fs.view()) == "trainfs");
  CHECK(mdtIndex(*fs.view()) == 0);
  CHECK(appliedIndex(*fs.view()) == 0);
  auto root = fs.attributes(kRootInode);
  CHECK(root.mode == (S_IFDIR | 0755));
  CHECK(root.links == 2);
  CHECK(root.mtime == Time{1000, 0});
  auto txn = fs.store.begin();
  setApplied(*txn, 7, {2000, 5});
  txn->commit();
  CHECK(appliedIndex(*fs.view()) == 7);
  CHECK(lastCommandTime(*fs.view()) == Time{2000, 5});
  CHECK_THROWS(format(*fs.store.begin(), "again", 0, {}));
}

}  // namespace trainfs::mds
