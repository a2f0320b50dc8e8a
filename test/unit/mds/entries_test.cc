#include <map>
#include <set>

#include "fixture.h"
#include "mds/directory.h"
#include "mds/keys.h"

namespace trainfs::mds {
namespace {

std::vector<DirEntry> listAll(const View& view, InodeId dir, uint32_t pageEntries) {
  std::vector<DirEntry> all;
  for (uint64_t cookie = 0;;) {
    auto page = readdir(view, dir, cookie, pageEntries);
    REQUIRE(page.ok());
    REQUIRE(page->entries.size() <= pageEntries);
    for (auto& entry : page->entries) {
      REQUIRE(entry.cookie > cookie);
      cookie = entry.cookie;
      all.push_back(std::move(entry));
    }
    if (page->end) return all;
    REQUIRE(!page->entries.empty());
  }
}

std::multiset<std::string> namesOf(const std::vector<DirEntry>& entries) {
  std::multiset<std::string> names;
  for (auto& entry : entries) names.insert(entry.name);
  return names;
}

}  // namespace

TEMPLATE_TEST_CASE("lookup finds, and says why not", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto dir = fs.directory(kRootInode, "dir");
  auto file = fs.file(dir, "file");
  CHECK(fs.at(dir, "file") == file);
  CHECK(fs.lookupError(dir, "other") == ENOENT);
  CHECK(fs.lookupError(file, "x") == ENOTDIR);
  CHECK(fs.lookupError({999}, "x") == ESTALE);
  CHECK(loadNode(*fs.view(), {999}).errnoOrZero() == ESTALE);
  CHECK(loadNode(*fs.view(), file)->layout == placedLayout());
}

TEMPLATE_TEST_CASE("readdir shows every entry once, whatever the page", "[mds]", MemStore,
                   LmdbStore) {
  Fixture<TestType> fs;
  auto dir = fs.directory(kRootInode, "dir");
  std::multiset<std::string> names;
  for (int i = 0; i < 100; i++) {
    auto name = "file" + std::to_string(i);
    fs.file(dir, name);
    names.insert(name);
  }
  fs.file(kRootInode, "not in dir");
  auto view = fs.view();
  for (uint32_t pageEntries : {1u, 7u, 99u, 100u, 1000u}) {
    auto all = listAll(*view, dir, pageEntries);
    CHECK(namesOf(all) == names);
    for (auto& entry : all) {
      CHECK(entry.inode == entry.node.attributes.inode);
      CHECK(entry.cookie > 2);
      CHECK(entry.cookie >> 63 == 0);
    }
  }
  CHECK(readdir(*view, dir, kCookieMax, 10)->end);
  CHECK(readdir(*view, dir, ~uint64_t{0}, 10)->entries.empty());
  CHECK(readdir(*view, fs.at(dir, "file1"), 0, 10).errnoOrZero() == ENOTDIR);
  CHECK(readdir(*view, {999}, 0, 10).errnoOrZero() == ESTALE);
}

TEMPLATE_TEST_CASE("cookies hold while other entries come and go", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  std::map<std::string, uint64_t> cookies;
  for (int i = 0; i < 40; i++) fs.file(kRootInode, "stays" + std::to_string(i));
  for (auto& entry : listAll(*fs.view(), kRootInode, 100)) cookies[entry.name] = entry.cookie;
  auto middle = readdir(*fs.view(), kRootInode, 0, 20);
  for (int i = 0; i < 40; i++) fs.file(kRootInode, "comes" + std::to_string(i));
  for (int i = 0; i < 40; i += 2)
    REQUIRE(fs.error(UnlinkOp{kRootInode, "comes" + std::to_string(i), {}}) == 0);
  std::multiset<std::string> seen;
  for (auto& entry : middle->entries) seen.insert(entry.name);
  auto rest = readdir(*fs.view(), kRootInode, middle->entries.back().cookie, 1000);
  for (auto& entry : rest->entries) seen.insert(entry.name);
  for (auto& [name, cookie] : cookies) CHECK(seen.count(name) == 1);
  for (auto& entry : listAll(*fs.view(), kRootInode, 100))
    if (cookies.contains(entry.name)) CHECK(cookies[entry.name] == entry.cookie);
}

TEMPLATE_TEST_CASE("names of equal hash are told apart by ordinals", "[mds]", MemStore, LmdbStore) {
  // Names that really collide cannot be had, so entries are put under the hash of another name by
  // hand.
  Fixture<TestType> fs;
  auto inode = fs.file(kRootInode, "wanted");
  auto txn = fs.store.begin();
  auto root = *loadInode(*txn, kRootInode);
  auto hash = nameHash(root.hashSeed, "wanted");
  auto value = encodeEntry({.inode = inode, .type = 8});
  txn->put(entryKey(kRootInode, {hash, 1}, "second"), value);
  txn->put(entryKey(kRootInode, {hash, 3}, "fourth"), value);
  CHECK(findEntry(*txn, root, "wanted")->record.inode == inode);
  CHECK(*freeEntryKey(*txn, root, "wanted") == entryKey(kRootInode, {hash, 2}, "wanted"));
  txn->erase(entryKey(kRootInode, {hash, 0}, "wanted"));
  CHECK(!findEntry(*txn, root, "wanted"));
  CHECK(*freeEntryKey(*txn, root, "wanted") == entryKey(kRootInode, {hash, 0}, "wanted"));
  txn->commit();
  auto page = readdir(*fs.view(), kRootInode, EntryPlace{hash, 1}.cookie(), 10);
  REQUIRE(page->entries.size() == 1);
  CHECK(page->entries[0].name == "fourth");
}

TEMPLATE_TEST_CASE("link adds a name, and not to everything", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto dir = fs.directory(kRootInode, "dir");
  auto file = fs.file(kRootInode, "file");
  CHECK(fs.run(LinkOp{file, dir, "again"}) == Outcome{.inode = file});
  CHECK(fs.at(dir, "again") == file);
  CHECK(fs.attributes(file).links == 2);
  CHECK(fs.attributes(file).ctime == fs.now);
  CHECK(fs.attributes(file).mtime < fs.now);
  CHECK(fs.attributes(dir).mtime == fs.now);
  auto before = fs.content();
  CHECK(fs.error(LinkOp{file, dir, "again"}) == EEXIST);
  CHECK(fs.error(LinkOp{dir, kRootInode, "dir2"}) == EPERM);
  CHECK(fs.error(LinkOp{{999}, dir, "x"}) == ESTALE);
  CHECK(fs.error(LinkOp{file, file, "x"}) == ENOTDIR);
  CHECK(fs.error(LinkOp{file, {999}, "x"}) == ESTALE);
  CHECK(fs.error(LinkOp{file, dir, ".."}) == EINVAL);
  CHECK(fs.error(LinkOp{file, dir, std::string(256, 'x')}) == ENAMETOOLONG);
  CHECK(fs.content() == before);
}

TEMPLATE_TEST_CASE("links have a limit", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto file = fs.file(kRootInode, "file");
  auto dir = fs.directory(kRootInode, "dir");
  auto sub = fs.directory(kRootInode, "sub");
  auto txn = fs.store.begin();
  for (auto inode : {file, dir}) {
    auto record = *loadInode(*txn, inode);
    record.attributes.links = kLinksMax;
    putInode(*txn, record);
  }
  txn->commit();
  CHECK(fs.error(LinkOp{file, kRootInode, "x"}) == EMLINK);
  CHECK(fs.error(fs.creation(dir, "x", S_IFDIR | 0755)) == EMLINK);
  CHECK(fs.error(RenameOp{
            .parent = kRootInode, .name = "sub", .newParent = dir, .newName = "sub"}) == EMLINK);
  CHECK(fs.error(fs.creation(dir, "x", S_IFREG | 0755)) == 0);
  CHECK(fs.exists(sub));
}

TEMPLATE_TEST_CASE("unlink takes a name, and the inode with the last", "[mds]", MemStore,
                   LmdbStore) {
  Fixture<TestType> fs;
  auto dir = fs.directory(kRootInode, "dir");
  auto empty = fs.content();
  auto file = fs.file(dir, "file");
  REQUIRE(fs.error(LinkOp{file, kRootInode, "again"}) == 0);
  REQUIRE(fs.error(SetXattrOp{.inode = file, .name = "user.a", .value = "1"}) == 0);
  CHECK(fs.run(UnlinkOp{dir, "file", {}}) == Outcome{.inode = file});
  CHECK(fs.attributes(file).links == 1);
  CHECK(fs.attributes(file).ctime == fs.now);
  CHECK(fs.attributes(dir).mtime == fs.now);
  CHECK(fs.lookupError(dir, "file") == ENOENT);
  CHECK(garbage(*fs.view(), 10).empty());
  CHECK(fs.run(UnlinkOp{kRootInode, "again", {}}) == Outcome{.inode = kNoInode});
  CHECK(!fs.exists(file));
  auto waste = garbage(*fs.view(), 10);
  REQUIRE(waste.size() == 1);
  CHECK(waste[0].inode == file);
  CHECK(waste[0].layout == placedLayout());
  CHECK(fs.error(ReapedOp{file, 1}) == 0);
  CHECK(garbage(*fs.view(), 10).empty());
  CHECK(fs.error(ReapedOp{file, 1}) == 0);
  // Nothing but times and the inode counter is left of it.
  CHECK(fs.content().size() == empty.size());
}

TEMPLATE_TEST_CASE("unlink and rmdir refuse what they are not for", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto dir = fs.directory(kRootInode, "dir");
  auto file = fs.file(dir, "file");
  auto before = fs.content();
  CHECK(fs.error(UnlinkOp{kRootInode, "dir", {}}) == EISDIR);
  CHECK(fs.error(UnlinkOp{kRootInode, "nothing", {}}) == ENOENT);
  CHECK(fs.error(UnlinkOp{file, "x", {}}) == ENOTDIR);
  CHECK(fs.error(UnlinkOp{{999}, "x", {}}) == ESTALE);
  CHECK(fs.error(UnlinkOp{dir, "..", {}}) == EINVAL);
  CHECK(fs.error(UnlinkOp{dir, std::string(256, 'x'), {}}) == ENAMETOOLONG);
  CHECK(fs.error(RmdirOp{kRootInode, "dir", {}}) == ENOTEMPTY);
  CHECK(fs.error(RmdirOp{dir, "file", {}}) == ENOTDIR);
  CHECK(fs.error(RmdirOp{dir, "nothing", {}}) == ENOENT);
  CHECK(fs.error(RmdirOp{dir, ".", {}}) == EINVAL);
  CHECK(fs.error(RmdirOp{file, "x", {}}) == ENOTDIR);
  CHECK(fs.content() == before);
}

TEMPLATE_TEST_CASE("rmdir takes the directory and its parent's link", "[mds]", MemStore,
                   LmdbStore) {
  Fixture<TestType> fs;
  auto before = fs.content();
  auto dir = fs.directory(kRootInode, "dir");
  CHECK(fs.attributes(kRootInode).links == 3);
  CHECK(fs.run(RmdirOp{kRootInode, "dir", {}}) == Outcome{.inode = kNoInode});
  CHECK(fs.attributes(kRootInode).links == 2);
  CHECK(fs.attributes(kRootInode).mtime == fs.now);
  CHECK(!fs.exists(dir));
  CHECK(fs.content().size() == before.size());
  CHECK(fs.error(fs.creation(dir, "x", S_IFREG | 0644)) == ESTALE);
}

}  // namespace trainfs::mds
