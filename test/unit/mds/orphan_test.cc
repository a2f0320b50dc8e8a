#include "fixture.h"
#include "store_check.h"

namespace trainfs::mds {

TEMPLATE_TEST_CASE("an open file lives unlinked until its last holder lets go", "[mds]", MemStore,
                   LmdbStore) {
  Fixture<TestType> fs;
  auto one = fs.session(), two = fs.session();
  auto before = fs.content();
  auto file = fs.file(kRootInode, "file");
  REQUIRE(fs.error(SetXattrOp{.inode = file, .name = "user.a", .value = "1"}) == 0);
  REQUIRE(fs.error(OpenWriteOp{file}, one) == 0);
  // A session that is gone and an inode that is not meant hold nothing.
  UnlinkOp op{kRootInode, "file", {{file, one}, {file, two}, {file, {999}}, {kRootInode, one}}};
  CHECK(fs.run(op) == Outcome{.inode = file});
  CHECK(fs.attributes(file).links == 0);
  CHECK(fs.attributes(file).ctime == fs.now);
  CHECK(orphansOf(*fs.view(), one) == std::vector{file});
  CHECK(orphansOf(*fs.view(), two) == std::vector{file});
  CHECK(orphansOf(*fs.view(), {999}).empty());
  CHECK(fs.error(LinkOp{file, kRootInode, "back"}) == ENOENT);
  CHECK(fs.error(SetAttrOp{.inode = file, .mask = kSetMode, .mode = 0600}, two) == 0);
  CHECK(fs.error(ReportOp{.inode = file, .sizeBytes = 9, .stillWriting = true}, one) == 0);
  CHECK(fs.attributes(file).sizeBytes == 9);
  CHECK(garbage(*fs.view(), 1).empty());
  CHECK(fs.run(ReleaseOp{file}, one) == Outcome{.inode = file});
  CHECK(fs.exists(file));
  CHECK(writersOf(*fs.view(), file).empty());
  CHECK(fs.run(ReleaseOp{file}, two) == Outcome{.inode = kNoInode});
  CHECK(!fs.exists(file));
  CHECK(garbage(*fs.view(), 10).size() == 1);
  CHECK(fs.run(ReleaseOp{file}, two).error == 0);
  REQUIRE(fs.error(ReapedOp{file, 1}) == 0);
  CHECK(fs.content().size() == before.size());
}

TEMPLATE_TEST_CASE("the end of a session lets its orphans go", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto one = fs.session(), two = fs.session();
  auto mine = fs.file(kRootInode, "mine");
  auto ours = fs.file(kRootInode, "ours");
  REQUIRE(fs.error(UnlinkOp{kRootInode, "mine", {{mine, one}}}) == 0);
  REQUIRE(fs.error(UnlinkOp{kRootInode, "ours", {{ours, one}, {ours, two}}}) == 0);
  REQUIRE(fs.error(EndSessionOp{one}) == 0);
  CHECK(!fs.exists(mine));
  CHECK(fs.exists(ours));
  CHECK(orphansOf(*fs.view(), one).empty());
  REQUIRE(fs.error(EndSessionOp{two}) == 0);
  CHECK(!fs.exists(ours));
  CHECK(garbage(*fs.view(), 1).size() == 1);
  CHECK(garbage(*fs.view(), 10).size() == 2);
}

TEMPLATE_TEST_CASE("a session that holds very much ends in bounded steps, and at once for good",
                   "[mds]", MemStore, LmdbStore) {
  constexpr size_t kFiles = 2 * kHoldsEndedAtOnce + 10;
  Fixture<TestType> fs;
  auto before = fs.content();
  auto one = fs.session(), two = fs.session();
  for (size_t i = 0; i < kFiles; ++i) {
    auto file = fs.make(kRootInode, "f", S_IFIFO | 0600);
    REQUIRE(fs.error(UnlinkOp{kRootInode, "f", {{file, one}}}) == 0);
  }
  auto shared = fs.file(kRootInode, "shared");
  REQUIRE(fs.error(OpenWriteOp{shared}, one) == 0);
  CHECK(!endedWithHolds(*fs.view()));

  CHECK(fs.run(EndSessionOp{one}) == Outcome{.value = 1});
  CHECK(orphansOf(*fs.view(), one).size() == kFiles + 1 - kHoldsEndedAtOnce);
  CHECK(endedWithHolds(*fs.view()) == one);
  REQUIRE(sessions(*fs.view()).size() == 1);
  CHECK(fs.error(OpenWriteOp{shared}, one) == ESTALE);
  REQUIRE(fs.error(UnlinkOp{kRootInode, "shared", {{shared, one}, {shared, two}}}) == 0);

  CHECK(fs.run(EndSessionOp{one}) == Outcome{.value = 1});
  CHECK(fs.run(EndSessionOp{one}) == Outcome{.value = 0});
  CHECK(!endedWithHolds(*fs.view()));
  CHECK(orphansOf(*fs.view(), two) == std::vector{shared});
  CHECK(problemsOf(*fs.view()) == std::vector<std::string>{});
  REQUIRE(fs.error(EndSessionOp{two}) == 0);
  REQUIRE(fs.error(ReapedOp{shared, 1}) == 0);
  CHECK(fs.content().size() == before.size());
}

TEMPLATE_TEST_CASE("the marks of the MDS itself end with no session", "[mds]", MemStore,
                   LmdbStore) {
  Fixture<TestType> fs;
  auto file = fs.file(kRootInode, "file");
  REQUIRE(fs.error(OpenWriteOp{file}) == 0);
  CHECK(!endedWithHolds(*fs.view()));
  CHECK(fs.run(EndSessionOp{}) == Outcome{});
  CHECK(writtenBy(*fs.view(), {}) == std::vector{file});
}

TEMPLATE_TEST_CASE("an open directory lives on when removed, and nothing can be made in it",
                   "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto session = fs.session();
  auto dir = fs.directory(kRootInode, "dir");
  auto file = fs.file(kRootInode, "file");
  CHECK(fs.run(RmdirOp{kRootInode, "dir", {{dir, session}}}) == Outcome{.inode = dir});
  CHECK(fs.attributes(dir).links == 0);
  CHECK(readdir(*fs.view(), dir, 0, 10)->entries.empty());
  CHECK(fs.lookupError(dir, "x") == ENOENT);
  CHECK(fs.error(fs.creation(dir, "x", S_IFREG | 0644)) == ENOENT);
  CHECK(fs.error(LinkOp{file, dir, "x"}) == ENOENT);
  RenameOp into{.parent = kRootInode, .name = "file", .newParent = dir, .newName = "x"};
  CHECK(fs.error(into) == ENOENT);
  CHECK(fs.error(UnlinkOp{dir, "x", {}}) == ENOENT);
  CHECK(fs.run(ReleaseOp{dir}, session) == Outcome{.inode = kNoInode});
  CHECK(!fs.exists(dir));
  CHECK(garbage(*fs.view(), 1).empty());
}

TEMPLATE_TEST_CASE("rename over an open file or directory keeps it as an orphan", "[mds]", MemStore,
                   LmdbStore) {
  Fixture<TestType> fs;
  auto session = fs.session();
  auto newer = fs.file(kRootInode, "newer");
  auto older = fs.file(kRootInode, "older");
  auto source = fs.directory(kRootInode, "source");
  auto target = fs.directory(kRootInode, "target");
  RenameOp files{
      .parent = kRootInode, .name = "newer", .newParent = kRootInode, .newName = "older"};
  files.holders = {{older, session}, {newer, session}};
  CHECK(fs.run(files) == Outcome{.inode = newer});
  CHECK(fs.attributes(older).links == 0);
  RenameOp directories{.parent = kRootInode,
                       .name = "source",
                       .newParent = kRootInode,
                       .newName = "target",
                       .holders = {{target, session}}};
  CHECK(fs.run(directories) == Outcome{.inode = source});
  CHECK(fs.attributes(target).links == 0);
  CHECK(orphansOf(*fs.view(), session) == std::vector{older, target});
  REQUIRE(fs.error(EndSessionOp{session}) == 0);
  CHECK(!fs.exists(older));
  CHECK(!fs.exists(target));
  CHECK(fs.attributes(kRootInode).links == 3);
}

TEMPLATE_TEST_CASE("a release of a linked file only drops the write mark", "[mds]", MemStore,
                   LmdbStore) {
  Fixture<TestType> fs;
  auto session = fs.session();
  auto file = fs.file(kRootInode, "file");
  REQUIRE(fs.error(OpenWriteOp{file}, session) == 0);
  CHECK(fs.run(ReleaseOp{file}, session) == Outcome{.inode = file});
  CHECK(writersOf(*fs.view(), file).empty());
  CHECK(fs.attributes(file).links == 1);
}

}  // namespace trainfs::mds
