#include "fixture.h"

namespace trainfs::mds {
namespace {

// /a (directory) with /a/file and /a/sub, /b (directory), /file, /other.
template <typename StoreType>
struct Tree : Fixture<StoreType> {
  InodeId a = this->directory(kRootInode, "a");
  InodeId inner = this->file(a, "file");
  InodeId sub = this->directory(a, "sub");
  InodeId b = this->directory(kRootInode, "b");
  InodeId file_ = this->file(kRootInode, "file");
  InodeId other = this->file(kRootInode, "other");

  Outcome rename(InodeId parent, std::string name, InodeId newParent, std::string newName) {
    return this->run(RenameOp{
        .parent = parent, .name = name, .newParent = newParent, .newName = newName, .holders = {}});
  }
  int noReplace(InodeId parent, std::string name, InodeId newParent, std::string newName) {
    return this->error(RenameOp{.parent = parent,
                                .name = name,
                                .newParent = newParent,
                                .newName = newName,
                                .noReplace = true,
                                .holders = {}});
  }
  int exchange(InodeId parent, std::string name, InodeId newParent, std::string newName) {
    return this->error(RenameOp{.parent = parent,
                                .name = name,
                                .newParent = newParent,
                                .newName = newName,
                                .exchange = true,
                                .holders = {}});
  }
};

}  // namespace

TEMPLATE_TEST_CASE("rename moves a file within and between directories", "[mds]", MemStore,
                   LmdbStore) {
  Tree<TestType> fs;
  CHECK(fs.rename(kRootInode, "file", kRootInode, "renamed") == Outcome{.inode = fs.file_});
  CHECK(fs.at(kRootInode, "renamed") == fs.file_);
  CHECK(fs.lookupError(kRootInode, "file") == ENOENT);
  CHECK(fs.attributes(fs.file_).ctime == fs.now);
  CHECK(fs.attributes(kRootInode).mtime == fs.now);
  CHECK(fs.rename(kRootInode, "renamed", fs.b, "file").error == 0);
  CHECK(fs.at(fs.b, "file") == fs.file_);
  CHECK(fs.attributes(kRootInode).mtime == fs.now);
  CHECK(fs.attributes(fs.b).mtime == fs.now);
  CHECK(fs.attributes(fs.b).ctime == fs.now);
  CHECK(fs.attributes(fs.file_).links == 1);
}

TEMPLATE_TEST_CASE("rename over a file replaces it", "[mds]", MemStore, LmdbStore) {
  Tree<TestType> fs;
  CHECK(fs.rename(fs.a, "file", kRootInode, "file").error == 0);
  CHECK(fs.at(kRootInode, "file") == fs.inner);
  CHECK(!fs.exists(fs.file_));
  REQUIRE(garbage(*fs.view(), 10).size() == 1);
  CHECK(garbage(*fs.view(), 10)[0].inode == fs.file_);
  // One that has another name stays.
  REQUIRE(fs.error(LinkOp{fs.other, fs.b, "other"}) == 0);
  CHECK(fs.rename(kRootInode, "file", kRootInode, "other").error == 0);
  CHECK(fs.attributes(fs.other).links == 1);
  CHECK(fs.attributes(fs.other).ctime == fs.now);
}

TEMPLATE_TEST_CASE("rename of two names of one file does nothing", "[mds]", MemStore, LmdbStore) {
  Tree<TestType> fs;
  REQUIRE(fs.error(LinkOp{fs.file_, fs.b, "same"}) == 0);
  auto before = fs.content();
  CHECK(fs.rename(kRootInode, "file", fs.b, "same") == Outcome{.inode = fs.file_});
  CHECK(fs.rename(kRootInode, "file", kRootInode, "file").error == 0);
  CHECK(fs.rename(kRootInode, "a", kRootInode, "a").error == 0);
  CHECK(fs.exchange(kRootInode, "file", fs.b, "same") == 0);
  CHECK(fs.noReplace(kRootInode, "file", fs.b, "same") == EEXIST);
  CHECK(fs.content() == before);
}

TEMPLATE_TEST_CASE("rename moves a directory with its parent's link", "[mds]", MemStore,
                   LmdbStore) {
  Tree<TestType> fs;
  CHECK(fs.rename(kRootInode, "a", fs.b, "moved").error == 0);
  CHECK(fs.at(fs.b, "moved") == fs.a);
  CHECK(fs.at(fs.a, "file") == fs.inner);
  CHECK(fs.attributes(kRootInode).links == 3);
  CHECK(fs.attributes(fs.b).links == 3);
  // The way up is the new one.
  CHECK(fs.rename(kRootInode, "b", fs.sub, "x").error == EINVAL);
  CHECK(fs.rename(fs.b, "moved", kRootInode, "a").error == 0);
  CHECK(fs.attributes(kRootInode).links == 4);
  CHECK(fs.rename(kRootInode, "b", fs.sub, "x").error == 0);
}

TEMPLATE_TEST_CASE("rename over a directory needs a directory and an empty one", "[mds]", MemStore,
                   LmdbStore) {
  Tree<TestType> fs;
  auto before = fs.content();
  CHECK(fs.rename(kRootInode, "b", kRootInode, "a").error == ENOTEMPTY);
  CHECK(fs.rename(kRootInode, "b", kRootInode, "file").error == ENOTDIR);
  CHECK(fs.rename(kRootInode, "file", kRootInode, "b").error == EISDIR);
  CHECK(fs.rename(fs.a, "sub", kRootInode, "a").error == ENOTEMPTY);
  CHECK(fs.content() == before);
  CHECK(fs.rename(kRootInode, "a", kRootInode, "b").error == 0);
  CHECK(fs.at(kRootInode, "b") == fs.a);
  CHECK(!fs.exists(fs.b));
  CHECK(fs.attributes(kRootInode).links == 3);
  auto target = fs.directory(kRootInode, "target");
  CHECK(fs.rename(fs.a, "sub", kRootInode, "target").error == 0);
  CHECK(!fs.exists(target));
  CHECK(fs.attributes(kRootInode).links == 4);
  CHECK(fs.attributes(fs.a).links == 2);
}

TEMPLATE_TEST_CASE("rename refuses a directory into itself", "[mds]", MemStore, LmdbStore) {
  Tree<TestType> fs;
  auto before = fs.content();
  CHECK(fs.rename(kRootInode, "a", fs.a, "x").error == EINVAL);
  CHECK(fs.rename(kRootInode, "a", fs.sub, "x").error == EINVAL);
  CHECK(fs.exchange(fs.a, "sub", kRootInode, "a") == EINVAL);
  CHECK(fs.exchange(kRootInode, "a", fs.a, "sub") == EINVAL);
  CHECK(fs.content() == before);
}

TEMPLATE_TEST_CASE("rename refuses what is missing or misnamed", "[mds]", MemStore, LmdbStore) {
  Tree<TestType> fs;
  auto before = fs.content();
  CHECK(fs.rename(kRootInode, "none", kRootInode, "x").error == ENOENT);
  CHECK(fs.rename(fs.file_, "x", kRootInode, "x").error == ENOTDIR);
  CHECK(fs.rename(kRootInode, "file", fs.other, "x").error == ENOTDIR);
  CHECK(fs.rename({999}, "file", kRootInode, "x").error == ESTALE);
  CHECK(fs.rename(kRootInode, "file", {999}, "x").error == ESTALE);
  CHECK(fs.rename(kRootInode, ".", kRootInode, "x").error == EINVAL);
  CHECK(fs.rename(kRootInode, "file", kRootInode, "..").error == EINVAL);
  CHECK(fs.rename(kRootInode, "file", kRootInode, std::string(256, 'x')).error == ENAMETOOLONG);
  CHECK(fs.rename(kRootInode, std::string(256, 'x'), kRootInode, "x").error == ENAMETOOLONG);
  CHECK(fs.noReplace(kRootInode, "file", kRootInode, "other") == EEXIST);
  CHECK(fs.exchange(kRootInode, "file", kRootInode, "none") == ENOENT);
  RenameOp both{.parent = kRootInode, .name = "file", .newParent = kRootInode, .newName = "other"};
  both.noReplace = both.exchange = true;
  CHECK(fs.error(both) == EINVAL);
  CHECK(fs.content() == before);
  CHECK(fs.noReplace(kRootInode, "file", kRootInode, "new") == 0);
  CHECK(fs.at(kRootInode, "new") == fs.file_);
}

TEMPLATE_TEST_CASE("rename exchanges two entries of any type", "[mds]", MemStore, LmdbStore) {
  Tree<TestType> fs;
  CHECK(fs.exchange(kRootInode, "file", fs.a, "sub") == 0);
  CHECK(fs.at(kRootInode, "file") == fs.sub);
  CHECK(fs.at(fs.a, "sub") == fs.file_);
  CHECK(fs.attributes(kRootInode).links == 5);
  CHECK(fs.attributes(fs.a).links == 2);
  CHECK(fs.attributes(fs.sub).ctime == fs.now);
  CHECK(fs.attributes(fs.file_).ctime == fs.now);
  // sub's parent is root now: /a may move into it.
  CHECK(fs.rename(kRootInode, "a", fs.sub, "a").error == 0);
  CHECK(fs.exchange(kRootInode, "other", kRootInode, "b") == 0);
  CHECK(fs.at(kRootInode, "other") == fs.b);
  CHECK(fs.exchange(fs.sub, "a", kRootInode, "other") == 0);
  CHECK(fs.attributes(fs.sub).links == 3);
  CHECK(fs.rename(kRootInode, "file", fs.a, "x").error == 0);
}

}  // namespace trainfs::mds
