// Files that are made without a name (O_TMPFILE), and get one, or go.
#include "fixture.h"
#include "mds/changelog.h"
#include "mds/names.h"
#include "store_check.h"

namespace trainfs::mds {
namespace {

template <typename StoreType>
struct Unnamed : Fixture<StoreType> {
  SessionId session = Fixture<StoreType>::session();

  CreateOp op(InodeId directory = kRootInode) {
    auto op = this->creation(directory, "", S_IFREG | 0640);
    op.writing = op.unnamed = op.linkable = true;
    return op;
  }
  InodeId made(const CreateOp& op) {
    auto outcome = this->run(op, session);
    REQUIRE(outcome == Outcome{.inode = op.newInode, .value = kMadeUnnamed});
    return outcome.inode;
  }
};

}  // namespace

TEMPLATE_TEST_CASE("a file without a name goes with its handle", "[mds]", MemStore, LmdbStore) {
  Unnamed<TestType> fs;
  auto before = fs.content();
  auto root = fs.attributes(kRootInode);
  auto file = fs.made(fs.op());
  CHECK(fs.attributes(file).links == 0);
  CHECK(fs.attributes(file).mode == (S_IFREG | 0640));
  CHECK(fs.attributes(file).btime == fs.now);
  CHECK(fs.attributes(kRootInode) == root);
  CHECK(readdir(*fs.view(), kRootInode, 0, 10)->entries.empty());
  CHECK(namesOf(*fs.view(), file, kRootInode, {}).errnoOrZero() == ESTALE);
  CHECK(writersOf(*fs.view(), file) == std::vector{fs.session});
  CHECK(problemsOf(*fs.view()) == std::vector<std::string>{});
  CHECK(fs.run(ReleaseOp{file}, fs.session) == Outcome{.inode = kNoInode});
  CHECK(!fs.exists(file));
  REQUIRE(fs.error(ReapedOp{file, 1}) == 0);
  CHECK(fs.content().size() == before.size());
}

TEMPLATE_TEST_CASE("a file without a name goes with its session", "[mds]", MemStore, LmdbStore) {
  Unnamed<TestType> fs;
  auto file = fs.made(fs.op());
  REQUIRE(fs.error(EndSessionOp{fs.session}) == 0);
  CHECK(!fs.exists(file));
  CHECK(garbage(*fs.view(), 10).size() == 1);
}

TEMPLATE_TEST_CASE("a link makes it a file like others", "[mds]", MemStore, LmdbStore) {
  Unnamed<TestType> fs;
  auto file = fs.made(fs.op());
  auto born = fs.now;
  auto other = fs.Fixture<TestType>::session();
  CHECK(fs.error(LinkOp{file, kRootInode, "name"}, other) == ENOENT);
  CHECK(fs.error(LinkOp{file, kRootInode, "name"}) == ENOENT);
  CHECK(fs.run(LinkOp{file, kRootInode, "name"}, fs.session) == Outcome{.inode = file});
  CHECK(fs.at(kRootInode, "name") == file);
  CHECK(fs.attributes(file).links == 1);
  CHECK(fs.attributes(file).btime == born);
  CHECK(fs.attributes(kRootInode).mtime == fs.now);
  CHECK(orphansOf(*fs.view(), fs.session).empty());
  CHECK(fs.error(LinkOp{file, kRootInode, "second"}, other) == 0);
  REQUIRE(fs.error(ReleaseOp{file}, fs.session) == 0);
  REQUIRE(fs.error(EndSessionOp{fs.session}) == 0);
  CHECK(fs.attributes(file).links == 2);
  CHECK(problemsOf(*fs.view()) == std::vector<std::string>{});
}

TEMPLATE_TEST_CASE("only what never had a name may get its first", "[mds]", MemStore, LmdbStore) {
  Unnamed<TestType> fs;
  auto exclusive = fs.op();
  exclusive.linkable = false;
  auto never = fs.made(exclusive);
  CHECK(fs.error(LinkOp{never, kRootInode, "name"}, fs.session) == ENOENT);
  auto once = fs.made(fs.op());
  REQUIRE(fs.error(LinkOp{once, kRootInode, "name"}, fs.session) == 0);
  REQUIRE(fs.run(UnlinkOp{kRootInode, "name", {{once, fs.session}}}).inode == once);
  CHECK(fs.error(LinkOp{once, kRootInode, "name"}, fs.session) == ENOENT);
}

TEMPLATE_TEST_CASE("where no file without a name can be made", "[mds]", MemStore, LmdbStore) {
  Unnamed<TestType> fs;
  auto op = fs.op();
  CHECK(fs.error(op) == EINVAL);  // it must be somebody's
  op.mode = S_IFDIR | 0755;
  CHECK(fs.error(op, fs.session) == EINVAL);
  auto file = fs.file(kRootInode, "file");
  CHECK(fs.error(fs.op(file), fs.session) == ENOTDIR);
  auto directory = fs.directory(kRootInode, "directory");
  REQUIRE(fs.error(RmdirOp{kRootInode, "directory", {{directory, fs.session}}}) == 0);
  CHECK(fs.error(fs.op(directory), fs.session) == ENOENT);
}

TEMPLATE_TEST_CASE(
    "a file without a name is made once, and known as long as its answer may be lost", "[mds]",
    MemStore, LmdbStore) {
  Unnamed<TestType> fs;
  auto command = fs.command(fs.op(), fs.session);
  command.slot = 3;
  command.sequence = 1;
  auto outcome = fs.applyAll(command);
  REQUIRE(outcome.error == 0);
  std::get<CreateOp>(command.op).newInode.value += 100;
  CHECK(fs.applyAll(command) == outcome);
  CHECK(orphansOf(*fs.view(), fs.session) == std::vector{outcome.inode});
  CHECK(madeUnnamed(*fs.view(), fs.session) == std::vector{outcome.inode});

  auto next = fs.command(fs.creation(kRootInode, "next", S_IFIFO | 0600), fs.session);
  next.slot = 3;
  next.sequence = 2;
  REQUIRE(fs.applyAll(next).error == 0);
  CHECK(madeUnnamed(*fs.view(), fs.session).empty());
}

TEMPLATE_TEST_CASE("the changelog learns of a file when it has a name", "[mds][changelog]",
                   MemStore, LmdbStore) {
  Unnamed<TestType> fs;
  REQUIRE(fs.error(RegisterChangelogOp{}) == 0);
  auto file = fs.made(fs.op());
  CHECK(lastChange(*fs.view()) == 0);
  REQUIRE(fs.error(LinkOp{file, kRootInode, "first"}, fs.session) == 0);
  REQUIRE(fs.error(LinkOp{file, kRootInode, "second"}, fs.session) == 0);
  auto changes = readChangelog(*fs.view(), 0, 10);
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].type == ChangeType::kCreate);
  CHECK(changes[0].target == file);
  CHECK(changes[0].name == "first");
  CHECK(changes[1].type == ChangeType::kHardlink);
}

}  // namespace trainfs::mds
