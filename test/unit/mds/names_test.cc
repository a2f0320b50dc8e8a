#include "mds/names.h"

#include <kj/exception.h>

#include <set>

#include "fixture.h"
#include "mds/records.h"
#include "store_check.h"

namespace trainfs::mds {
namespace {

using Paths = std::set<std::string>;

template <typename Fs>
Paths pathsOf(Fs& fs, InodeId inode, InodeId root = kRootInode) {
  Paths paths;
  NameCursor after;
  for (bool end = false; !end;) {
    auto page = namesOf(*fs.view(), inode, root, after);
    REQUIRE(page.ok());
    for (auto& name : page->names) CHECK(paths.insert(name.path).second);
    end = page->end;
    after = page->next;
  }
  return paths;
}

template <typename Fs>
int rename(Fs& fs, InodeId parent, std::string name, InodeId newParent, std::string newName,
           bool exchange = false) {
  return fs.error(RenameOp{.parent = parent,
                           .name = name,
                           .newParent = newParent,
                           .newName = newName,
                           .exchange = exchange,
                           .holders = {}});
}

}  // namespace

TEMPLATE_TEST_CASE("an inode's names follow links, unlinks and renames", "[mds][names]", MemStore,
                   LmdbStore) {
  Fixture<TestType> fs;
  auto a = fs.directory(kRootInode, "a"), b = fs.directory(a, "b");
  auto file = fs.file(b, "f"), other = fs.file(kRootInode, "other");
  CHECK(pathsOf(fs, file) == Paths{"/a/b/f"});
  CHECK(pathsOf(fs, b) == Paths{"/a/b"});
  CHECK(pathsOf(fs, kRootInode) == Paths{"/"});
  CHECK(fs.error(LinkOp{file, kRootInode, "g"}) == 0);
  CHECK(fs.error(LinkOp{file, b, "h"}) == 0);
  CHECK(pathsOf(fs, file) == Paths{"/a/b/f", "/g", "/a/b/h"});
  CHECK(fs.error(UnlinkOp{b, "f", {}}) == 0);  // the one in the record: another takes its place
  CHECK(pathsOf(fs, file) == Paths{"/g", "/a/b/h"});
  CHECK(rename(fs, kRootInode, "g", a, "moved") == 0);
  CHECK(rename(fs, b, "h", b, "i") == 0);
  CHECK(rename(fs, kRootInode, "a", kRootInode, "A") == 0);
  CHECK(pathsOf(fs, file) == Paths{"/A/moved", "/A/b/i"});
  CHECK(rename(fs, kRootInode, "other", b, "i") == 0);
  CHECK(pathsOf(fs, other) == Paths{"/A/b/i"});
  CHECK(pathsOf(fs, file) == Paths{"/A/moved"});
  CHECK(rename(fs, b, "i", a, "moved", true) == 0);
  CHECK(pathsOf(fs, other) == Paths{"/A/moved"});
  CHECK(pathsOf(fs, file) == Paths{"/A/b/i"});
  CHECK(problemsOf(*fs.view()).empty());
}

TEMPLATE_TEST_CASE("what has no names any more is stale", "[mds][names]", MemStore) {
  Fixture<TestType> fs;
  auto session = fs.session();
  auto file = fs.file(kRootInode, "f");
  CHECK(fs.error(UnlinkOp{kRootInode, "f", {{file, session}}}) == 0);
  CHECK(fs.exists(file));
  CHECK(namesOf(*fs.view(), file, kRootInode, {}).errnoOrZero() == ESTALE);
  CHECK(namesOf(*fs.view(), {12345}, kRootInode, {}).errnoOrZero() == ESTALE);
}

TEMPLATE_TEST_CASE("names outside of the directory asked for are not told", "[mds][names]",
                   MemStore) {
  Fixture<TestType> fs;
  auto sub = fs.directory(kRootInode, "sub"), inner = fs.directory(sub, "inner");
  auto file = fs.file(inner, "f");
  CHECK(fs.error(LinkOp{file, kRootInode, "outside"}) == 0);
  CHECK(pathsOf(fs, file, sub) == Paths{"/inner/f"});
  CHECK(pathsOf(fs, sub, sub) == Paths{"/"});
  CHECK(pathsOf(fs, kRootInode, sub) == Paths{});
}

TEMPLATE_TEST_CASE("many names come in pages, each once", "[mds][names]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto file = fs.file(kRootInode, "first");
  constexpr size_t kLinks = 3 * kNamesPerPage;
  auto txn = fs.store.begin();
  for (size_t i = 1; i < kLinks; i++)
    REQUIRE(apply(fs.command(LinkOp{file, kRootInode, "n" + std::to_string(i)}), *txn).error == 0);
  txn->commit();
  CHECK(pathsOf(fs, file).size() == kLinks);
  auto page = namesOf(*fs.view(), file, kRootInode, {});
  CHECK(page->names.size() == kNamesPerPage);
  CHECK(!page->end);
}

TEMPLATE_TEST_CASE("a path that is too long is told without it", "[mds][names]", MemStore) {
  Fixture<TestType> fs;
  InodeId directory = kRootInode;
  std::string name(kNameBytesMax, 'x');
  for (size_t bytes = 0; bytes <= kPathBytesMax; bytes += name.size() + 1)
    directory = fs.directory(directory, name);
  InodeId file = fs.file(directory, "f");
  auto page = namesOf(*fs.view(), file, kRootInode, {});
  REQUIRE(page.ok());
  REQUIRE(page->names.size() == 1);
  CHECK(page->names[0].name == "f");
  CHECK(page->names[0].path.empty());
}

TEST_CASE("a store of version 1 is refused by name", "[mds][names]") {
  Fixture<MemStore> fs;
  auto txn = fs.store.begin();
  txn->put(kFormatVersionKey, encodeNumber(1));
  txn->commit();
  try {
    requireFormat(*fs.view(), "/targets/mdt0");
    FAIL("it was taken");
  } catch (const kj::Exception& exception) {
    std::string said = exception.getDescription().cStr();
    CHECK(said.find("earlier trainfs") != said.npos);
    CHECK(said.find("/targets/mdt0") != said.npos);
  }
}

}  // namespace trainfs::mds
