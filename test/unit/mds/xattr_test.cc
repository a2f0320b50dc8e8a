#include "fixture.h"

namespace trainfs::mds {

TEMPLATE_TEST_CASE("extended attributes are set, read, listed and removed", "[mds]", MemStore,
                   LmdbStore) {
  Fixture<TestType> fs;
  auto file = fs.file(kRootInode, "file");
  auto other = fs.file(kRootInode, "other");
  auto set = [&](std::string name, std::string value, bool create = false, bool replace = false) {
    return fs.error(SetXattrOp{file, std::move(name), std::move(value), create, replace});
  };
  auto get = [&](std::string_view name) { return getxattr(*fs.view(), file, name); };
  CHECK(set("user.b", "", true) == 0);
  CHECK(set("user.a", std::string("1\0002", 3)) == 0);
  CHECK(fs.attributes(file).ctime == fs.now);
  CHECK(*get("user.a") == std::string("1\0002", 3));
  CHECK(*get("user.b") == "");
  CHECK(get("user").errnoOrZero() == ENODATA);
  CHECK(*listxattr(*fs.view(), file) == std::vector<std::string>{"user.a", "user.b"});
  CHECK(listxattr(*fs.view(), other)->empty());
  CHECK(set("user.a", "x", true) == EEXIST);
  CHECK(set("user.c", "x", false, true) == ENODATA);
  CHECK(set("user.a", "new", false, true) == 0);
  CHECK(*get("user.a") == "new");
  CHECK(fs.error(RemoveXattrOp{file, "user.a"}) == 0);
  CHECK(fs.error(RemoveXattrOp{file, "user.a"}) == ENODATA);
  CHECK(*listxattr(*fs.view(), file) == std::vector<std::string>{"user.b"});
}

TEMPLATE_TEST_CASE("extended attributes have limits", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto file = fs.file(kRootInode, "file");
  auto set = [&](std::string name, std::string value) {
    return fs.error(SetXattrOp{.inode = file, .name = std::move(name), .value = std::move(value)});
  };
  CHECK(set("", "x") == ERANGE);
  CHECK(set("user." + std::string(251, 'x'), "x") == ERANGE);
  CHECK(set("user." + std::string(250, 'x'), "x") == 0);
  CHECK(set(std::string("user.\0", 6), "x") == EINVAL);
  CHECK(set("user.big", std::string(kXattrValueBytesMax + 1, 'x')) == E2BIG);
  CHECK(set("user.big", std::string(kXattrValueBytesMax, 'x')) == 0);
  CHECK(set("trainfs.layout", "x") == EOPNOTSUPP);
  CHECK(set("trainfs.other", "x") == EOPNOTSUPP);
  CHECK(fs.error(RemoveXattrOp{file, "trainfs.layout"}) == EOPNOTSUPP);
  CHECK(fs.error(SetXattrOp{.inode = {999}, .name = "user.a", .value = ""}) == ESTALE);
  CHECK(fs.error(RemoveXattrOp{{999}, "user.a"}) == ESTALE);

  int set64KiB = 1;
  while (set("user.big" + std::to_string(set64KiB), std::string(kXattrValueBytesMax, 'x')) == 0)
    set64KiB++;
  CHECK(set64KiB == 15);  // of 64 KiB and a name each, into 1 MiB
  CHECK(set("user.big0", std::string(kXattrValueBytesMax, 'x')) == ENOSPC);
  CHECK(set("user.big", std::string(kXattrValueBytesMax, 'y')) == 0);
  // listxattr(2) returns at most 64 KiB of names.
  auto many = fs.file(kRootInode, "many");
  int names = 0, error = 0;
  while (error == 0) {
    auto name = std::string("user.") + std::string(240, 'x') + std::to_string(1000 + names);
    error = fs.error(SetXattrOp{.inode = many, .name = name, .value = ""});
    if (error == 0) names++;
  }
  CHECK(error == ENOSPC);
  CHECK(names == 65536 / 250);
}

}  // namespace trainfs::mds
