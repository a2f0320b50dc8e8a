#include "fixture.h"

namespace trainfs::mds {

TEMPLATE_TEST_CASE("create makes every type of inode", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  fs.identity = {.uid = 7, .gid = 8};
  auto file = fs.attributes(fs.make(kRootInode, "file", S_IFREG | 0640));
  CHECK(file.mode == (S_IFREG | 0640));
  CHECK(file.uid == 7);
  CHECK(file.gid == 8);
  CHECK(file.links == 1);
  CHECK(file.sizeBytes == 0);
  CHECK(file.mtime == fs.now);
  CHECK(file.btime == fs.now);
  auto directory = fs.attributes(fs.make(kRootInode, "dir", S_IFDIR | 0711));
  CHECK(directory.mode == (S_IFDIR | 0711));
  CHECK(directory.links == 2);
  CHECK(fs.attributes(kRootInode).links == 3);
  CHECK(fs.attributes(kRootInode).mtime == fs.now);
  CHECK(fs.attributes(kRootInode).ctime == fs.now);
  auto device = fs.creation(kRootInode, "null", S_IFCHR | 0666);
  device.device = 0x103;
  CHECK(fs.attributes(fs.run(device).inode).device == 0x103);
  CHECK(S_ISFIFO(fs.attributes(fs.make(kRootInode, "fifo", S_IFIFO | 0600)).mode));
  CHECK(S_ISSOCK(fs.attributes(fs.make(kRootInode, "socket", S_IFSOCK | 0600)).mode));
  auto symlink = fs.creation(kRootInode, "symlink", S_IFLNK | 0777);
  symlink.target = "dir/file";
  auto made = fs.run(symlink);
  CHECK(fs.attributes(made.inode).sizeBytes == 8);
  CHECK(*readlink(*fs.view(), made.inode) == "dir/file");
  CHECK(readlink(*fs.view(), file.inode).errnoOrZero() == EINVAL);
}

TEMPLATE_TEST_CASE("create refuses bad names, parents, types and targets", "[mds]", MemStore,
                   LmdbStore) {
  Fixture<TestType> fs;
  auto file = fs.file(kRootInode, "file");
  auto before = fs.content();
  auto error = [&](InodeId parent, std::string name, uint32_t mode = S_IFREG | 0644) {
    return fs.error(fs.creation(parent, std::move(name), mode));
  };
  CHECK(error(kRootInode, "file") == EEXIST);
  CHECK(error(kRootInode, "file", S_IFDIR | 0755) == EEXIST);
  CHECK(error(kRootInode, "") == EINVAL);
  CHECK(error(kRootInode, ".") == EINVAL);
  CHECK(error(kRootInode, "..") == EINVAL);
  CHECK(error(kRootInode, "a/b") == EINVAL);
  CHECK(error(kRootInode, std::string("a\0b", 3)) == EINVAL);
  CHECK(error(kRootInode, std::string(256, 'x')) == ENAMETOOLONG);
  CHECK(error(file, "x") == ENOTDIR);
  CHECK(error({12345}, "x") == ESTALE);
  CHECK(error(kRootInode, "x", 0644) == EINVAL);
  auto symlink = fs.creation(kRootInode, "symlink", S_IFLNK | 0777);
  CHECK(fs.error(symlink) == ENOENT);
  symlink.target = std::string(4096, 't');
  CHECK(fs.error(symlink) == ENAMETOOLONG);
  symlink.target = std::string("a\0b", 3);
  CHECK(fs.error(symlink) == EINVAL);
  auto layoutless = fs.creation(kRootInode, "x", S_IFREG | 0644);
  layoutless.layout = {};
  CHECK(fs.error(layoutless) == EINVAL);
  auto reused = fs.creation(kRootInode, "x", S_IFREG | 0644);
  reused.newInode = file;
  CHECK(fs.error(reused) == EIO);
  CHECK(fs.content() == before);
}

TEMPLATE_TEST_CASE("names of the longest length work", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  std::string name(kNameBytesMax, '\xff');
  auto inode = fs.file(kRootInode, name);
  CHECK(fs.at(kRootInode, name) == inode);
  auto symlink = fs.creation(kRootInode, "longest", S_IFLNK | 0777);
  symlink.target = std::string(kSymlinkBytesMax, 't');
  auto made = fs.run(symlink);
  CHECK(*readlink(*fs.view(), made.inode) == symlink.target);
  CHECK(fs.lookupError(kRootInode, std::string(256, 'x')) == ENAMETOOLONG);
}

TEMPLATE_TEST_CASE("create without exclusive opens a regular file only", "[mds]", MemStore,
                   LmdbStore) {
  Fixture<TestType> fs;
  auto session = fs.session();
  auto inode = fs.file(kRootInode, "file");
  fs.directory(kRootInode, "dir");
  fs.make(kRootInode, "fifo", S_IFIFO | 0644);
  auto symlink = fs.creation(kRootInode, "symlink", S_IFLNK | 0777);
  symlink.target = "file";
  REQUIRE(fs.error(symlink) == 0);
  auto open = [&](std::string name, bool writing) {
    auto op = fs.creation(kRootInode, std::move(name), S_IFREG | 0644);
    op.exclusive = false;
    op.writing = writing;
    return fs.run(op, session);
  };
  CHECK(open("file", false) == Outcome{.inode = inode, .existed = true});
  CHECK(writersOf(*fs.view(), inode).empty());
  CHECK(open("file", true) == Outcome{.inode = inode, .existed = true});
  CHECK(writersOf(*fs.view(), inode) == std::vector{session});
  CHECK(open("dir", false).error == EISDIR);
  CHECK(open("symlink", false).error == EEXIST);
  CHECK(open("fifo", false).error == EEXIST);
  auto made = open("new", true);
  CHECK(made.error == 0);
  CHECK(!made.existed);
  CHECK(writtenBy(*fs.view(), session) == std::vector{inode, made.inode});
}

TEMPLATE_TEST_CASE("a set-group-ID directory passes its group on", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  fs.identity = {.uid = 1, .gid = 50};
  auto shared = fs.make(kRootInode, "shared", S_IFDIR | S_ISGID | 0775);
  fs.identity = {.uid = 2, .gid = 60};
  auto file = fs.attributes(fs.make(shared, "file", S_IFREG | 0644));
  CHECK(file.gid == 50);
  CHECK(file.uid == 2);
  CHECK(!(file.mode & S_ISGID));
  auto directory = fs.attributes(fs.make(shared, "dir", S_IFDIR | 0755));
  CHECK(directory.gid == 50);
  CHECK((directory.mode & S_ISGID) != 0);
  CHECK(!(fs.attributes(fs.make(shared, "program", S_IFREG | S_ISGID | 0755)).mode & S_ISGID));
  fs.identity.groups = {50};
  CHECK((fs.attributes(fs.make(shared, "member's", S_IFREG | S_ISGID | 0755)).mode & S_ISGID) != 0);
}

TEMPLATE_TEST_CASE("inode numbers go on above every number used", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  CHECK(nextInode(*fs.view()) == InodeId{2});
  auto op = fs.creation(kRootInode, "a", S_IFREG | 0644);
  op.newInode = {100};
  REQUIRE(fs.error(op) == 0);
  CHECK(nextInode(*fs.view()) == InodeId{101});
  op.name = "b";
  op.newInode = {50};
  REQUIRE(fs.error(op) == 0);
  CHECK(nextInode(*fs.view()) == InodeId{101});
}

}  // namespace trainfs::mds
