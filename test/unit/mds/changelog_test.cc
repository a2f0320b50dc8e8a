#include "mds/changelog.h"

#include "fixture.h"
#include "mds/keys.h"

namespace trainfs::mds {
namespace {

template <typename StoreType>
struct Logged : Fixture<StoreType> {
  uint32_t user = add("first");

  uint32_t add(const std::string& name) {
    auto outcome = this->run(RegisterChangelogOp{name});
    REQUIRE(outcome.error == 0);
    return outcome.value;
  }
  std::vector<ChangeRecord> all() { return readChangelog(*this->view(), 0, SIZE_MAX); }
  // The newest, which must be the only one since the last call.
  ChangeRecord newest() {
    auto changes = readChangelog(*this->view(), seen + 1, SIZE_MAX);
    REQUIRE(changes.size() == 1);
    seen = changes[0].index;
    return changes[0];
  }
  void trim() {
    while (this->run(TrimChangelogOp{}).value != 0) continue;
  }
  uint64_t seen = 0;
};

}  // namespace

TEMPLATE_TEST_CASE("every kind of change has its record", "[mds][changelog]", MemStore, LmdbStore) {
  Logged<TestType> fs;
  fs.identity = {.uid = 7, .gid = 8, .groups = {}};
  auto directory = fs.directory(kRootInode, "d");
  auto change = fs.newest();
  CHECK(change.type == ChangeType::kMkdir);
  CHECK(change.target == directory);
  CHECK(change.parent == kRootInode);
  CHECK(change.name == "d");
  CHECK(change.time == fs.now);
  CHECK((change.hasOwner && change.uid == 7 && change.gid == 8));

  auto file = fs.file(directory, "f");
  CHECK(fs.newest().type == ChangeType::kCreate);
  fs.make(directory, "pipe", S_IFIFO | 0600);
  CHECK(fs.newest().type == ChangeType::kMknod);
  auto link = fs.creation(directory, "s", S_IFLNK);
  link.target = "f";
  REQUIRE(fs.error(link) == 0);
  CHECK(fs.newest().type == ChangeType::kSymlink);
  REQUIRE(fs.error(LinkOp{file, kRootInode, "g"}) == 0);
  change = fs.newest();
  CHECK(change.type == ChangeType::kHardlink);
  CHECK((change.target == file && change.parent == kRootInode && change.name == "g"));

  REQUIRE(fs.error(SetAttrOp{.inode = file, .mask = kSetSize | kSetMtimeNow}) == 0);
  CHECK(fs.newest().type == ChangeType::kTruncate);
  REQUIRE(fs.error(SetAttrOp{.inode = file, .mask = kSetMode | kSetMtimeNow, .mode = 0600}) == 0);
  CHECK(fs.newest().type == ChangeType::kSetattr);
  REQUIRE(fs.error(SetAttrOp{.inode = file, .mask = kSetMtime}) == 0);
  CHECK(fs.newest().type == ChangeType::kMtime);
  REQUIRE(fs.error(SetXattrOp{file, "user.x", "1", false, false}) == 0);
  change = fs.newest();
  CHECK((change.type == ChangeType::kXattr && change.xattr == "user.x" && change.target == file));
  REQUIRE(fs.error(RemoveXattrOp{file, "user.x"}) == 0);
  CHECK(fs.newest().type == ChangeType::kXattr);
  REQUIRE(fs.error(SetLayoutOp{.inode = directory, .layout = placedLayout()}) == 0);
  CHECK(fs.newest().type == ChangeType::kLayout);

  REQUIRE(fs.error(UnlinkOp{directory, "f", {}}) == 0);
  change = fs.newest();
  CHECK((change.type == ChangeType::kUnlink && change.target == file && !change.lastLink));
  REQUIRE(fs.error(RenameOp{kRootInode, "g", directory, "s"}) == 0);
  change = fs.newest();
  CHECK(change.type == ChangeType::kRename);
  CHECK((change.parent == directory && change.name == "s" && change.lastLink));
  CHECK((change.source == file && change.sourceParent == kRootInode && change.sourceName == "g"));
  REQUIRE(fs.error(UnlinkOp{directory, "s", {}}) == 0);
  CHECK(fs.newest().lastLink);
  auto empty = fs.directory(kRootInode, "e");
  fs.newest();
  REQUIRE(fs.error(RmdirOp{kRootInode, "e", {}}) == 0);
  change = fs.newest();
  CHECK((change.type == ChangeType::kRmdir && change.target == empty && change.lastLink));
}

TEMPLATE_TEST_CASE("what changes nothing has no record", "[mds][changelog]", MemStore, LmdbStore) {
  Logged<TestType> fs;
  auto file = fs.file(kRootInode, "f");
  REQUIRE(fs.error(LinkOp{file, kRootInode, "g"}) == 0);
  REQUIRE(fs.all().size() == 2);
  CHECK(fs.error(UnlinkOp{kRootInode, "none", {}}) == ENOENT);
  CHECK(fs.error(RenameOp{kRootInode, "f", kRootInode, "g"}) == 0);  // the same file
  auto open = fs.creation(kRootInode, "f", S_IFREG | 0644);
  open.exclusive = false;
  CHECK(fs.run(open).existed);
  CHECK(fs.error(SetAttrOp{.inode = file, .mask = kSetAtimeNow}) == 0);
  CHECK(fs.all().size() == 2);
}

TEMPLATE_TEST_CASE("a file that was written is closed once, by its report or its release",
                   "[mds][changelog]", MemStore, LmdbStore) {
  Logged<TestType> fs;
  auto writer = fs.session();
  auto file = fs.file(kRootInode, "f");
  fs.newest();
  REQUIRE(fs.error(OpenWriteOp{file}, writer) == 0);
  REQUIRE(fs.error(ReportOp{.inode = file, .sizeBytes = 5, .stillWriting = true}, writer) == 0);
  REQUIRE(fs.all().size() == 1);
  SECTION("report") {
    REQUIRE(fs.error(ReportOp{.inode = file, .sizeBytes = 9}, writer) == 0);
  }
  SECTION("release") {
    REQUIRE(fs.error(ReleaseOp{file}, writer) == 0);
  }
  auto change = fs.newest();
  CHECK((change.type == ChangeType::kClose && change.target == file && !change.hasOwner));
  REQUIRE(fs.error(ReleaseOp{file}, writer) == 0);
  CHECK(fs.all().size() == 2);
}

TEMPLATE_TEST_CASE("nothing is recorded while nobody is registered", "[mds][changelog]", MemStore,
                   LmdbStore) {
  Fixture<TestType> fs;
  fs.file(kRootInode, "before");
  CHECK(lastChange(*fs.view()) == 0);
  auto user = static_cast<uint32_t>(fs.run(RegisterChangelogOp{}).value);
  CHECK(user == 1);
  fs.file(kRootInode, "during");
  CHECK(lastChange(*fs.view()) == 1);
  REQUIRE(fs.error(DeregisterChangelogOp{user}) == 0);
  fs.file(kRootInode, "after");
  CHECK(hasClearedChanges(*fs.view()));
  CHECK(fs.run(TrimChangelogOp{}).value == 0);
  CHECK(readChangelog(*fs.view(), 0, 10).empty());
  // Numbers of records and users go on.
  CHECK(fs.run(RegisterChangelogOp{}).value == 2);
  fs.file(kRootInode, "again");
  CHECK(readChangelog(*fs.view(), 0, 10).at(0).index == 2);
}

TEMPLATE_TEST_CASE("a record stays until every user has cleared it", "[mds][changelog]", MemStore,
                   LmdbStore) {
  Logged<TestType> fs;
  for (int i = 0; i < 5; i++) fs.file(kRootInode, "f" + std::to_string(i));
  auto second = fs.add("second");
  for (int i = 5; i < 9; i++) fs.file(kRootInode, "f" + std::to_string(i));
  auto first = [&] { return fs.all().empty() ? 0 : fs.all()[0].index; };

  CHECK(fs.error(ClearChangelogOp{second, 10}) == EINVAL);
  CHECK(fs.error(ClearChangelogOp{99, 1}) == ENOENT);
  REQUIRE(fs.error(ClearChangelogOp{second, 9}) == 0);
  fs.trim();
  CHECK(first() == 1);
  REQUIRE(fs.error(ClearChangelogOp{fs.user, 3}) == 0);
  REQUIRE(fs.error(ClearChangelogOp{fs.user, 1}) == 0);  // takes nothing back
  fs.trim();
  CHECK(first() == 4);
  CHECK(changelogUsers(*fs.view()).users.at(0).cleared == 3);
  REQUIRE(fs.error(ClearChangelogOp{fs.user, 0}) == 0);
  fs.trim();
  CHECK(fs.all().empty());
  CHECK_FALSE(hasClearedChanges(*fs.view()));
  CHECK(fs.error(DeregisterChangelogOp{99}) == ENOENT);
}

TEMPLATE_TEST_CASE("names of the changelog's users are told apart, and bounded", "[mds][changelog]",
                   MemStore, LmdbStore) {
  Logged<TestType> fs;
  CHECK(fs.error(RegisterChangelogOp{"first"}) == EEXIST);
  CHECK(fs.error(RegisterChangelogOp{std::string(256, 'x')}) == ENAMETOOLONG);
  for (size_t i = 1; i < kChangelogUsersMax; i++) REQUIRE(fs.error(RegisterChangelogOp{}) == 0);
  CHECK(fs.error(RegisterChangelogOp{}) == EMFILE);
}

TEST_CASE("much that is cleared is erased in steps", "[mds][changelog]") {
  Logged<MemStore> fs;
  auto file = fs.file(kRootInode, "f");
  for (size_t i = 0; i < 2 * kTrimmedAtOnce; i++)
    REQUIRE(fs.error(SetAttrOp{.inode = file, .mask = kSetMode, .mode = 0600}) == 0);
  REQUIRE(fs.error(ClearChangelogOp{fs.user, 0}) == 0);
  CHECK(fs.run(TrimChangelogOp{}).value == 1);
  CHECK(fs.all().at(0).index == kTrimmedAtOnce + 1);
  CHECK(fs.run(TrimChangelogOp{}).value == 1);
  CHECK(fs.run(TrimChangelogOp{}).value == 0);
  CHECK(fs.all().empty());
}

TEST_CASE("a damaged changelog record is refused by name", "[mds][changelog]") {
  auto bytes = encodeChange({.index = 3, .name = "f"});
  CHECK(decodeChange(3, bytes).name == "f");
  for (size_t length = 0; length < bytes.size(); ++length)
    CHECK_THROWS_AS(decodeChange(3, bytes.substr(0, length)), kj::Exception);
  bytes[0] = 9;
  CHECK_THROWS_AS(decodeChange(3, bytes), kj::Exception);
}

}  // namespace trainfs::mds
