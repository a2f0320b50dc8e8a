#include <linux/fs.h>

#include "fixture.h"
#include "store_check.h"

namespace trainfs::mds {
namespace {

Layout twoComponents() {
  Layout layout = placedLayout();
  layout.components[0].endBytes = 4 * kMiB;
  Component second;
  second.startBytes = 4 * kMiB;
  second.endBytes = 16 * kMiB;
  second.stripeCount = 2;
  layout.components.push_back(second);
  return layout;
}

}  // namespace

TEMPLATE_TEST_CASE("setattr changes what the mask names and nothing else", "[mds]", MemStore,
                   LmdbStore) {
  Fixture<TestType> fs;
  auto file = fs.file(kRootInode, "file");
  auto expected = fs.attributes(file);
  SetAttrOp op{.inode = file, .mask = kSetMode, .mode = S_IFDIR | 07755, .uid = 5, .gid = 6};
  op.sizeBytes = 99;
  op.atime = {1, 2};
  op.mtime = {3, 4};
  CHECK(fs.run(op) == Outcome{.inode = file});
  expected.mode = S_IFREG | 07755;
  expected.ctime = fs.now;
  CHECK(fs.attributes(file) == expected);
  op.mask = kSetAtime | kSetMtime;
  REQUIRE(fs.error(op) == 0);
  expected.atime = {1, 2};
  expected.mtime = {3, 4};
  expected.settings = 1;
  expected.ctime = fs.now;
  CHECK(fs.attributes(file) == expected);
  op.mask = kSetAtimeNow | kSetMtimeNow;
  REQUIRE(fs.error(op) == 0);
  expected.atime = expected.mtime = expected.ctime = fs.now;
  expected.settings = 2;
  CHECK(fs.attributes(file) == expected);
  op.mask = kSetUid | kSetGid;
  REQUIRE(fs.error(op) == 0);
  expected.uid = 5;
  expected.gid = 6;
  expected.mode = S_IFREG | 01755;  // a new owner gets no privileges with it
  expected.ctime = fs.now;
  CHECK(fs.attributes(file) == expected);
}

TEMPLATE_TEST_CASE("setattr refuses what it cannot do", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto file = fs.file(kRootInode, "file");
  auto dir = fs.directory(kRootInode, "dir");
  auto fifo = fs.make(kRootInode, "fifo", S_IFIFO | 0644);
  auto op = fs.creation(kRootInode, "short", S_IFREG | 0644);
  op.layout = twoComponents();
  auto bounded = fs.run(op).inode;
  auto before = fs.content();
  auto size = [&](InodeId inode, uint64_t bytes) {
    return fs.error(SetAttrOp{.inode = inode, .mask = kSetSize, .sizeBytes = bytes});
  };
  CHECK(size(dir, 0) == EISDIR);
  CHECK(size(fifo, 0) == EINVAL);
  CHECK(size({999}, 0) == ESTALE);
  CHECK(size(file, kFileBytesMax + 1) == EFBIG);
  CHECK(size(bounded, 16 * kMiB + 1) == EFBIG);
  CHECK(fs.error(SetAttrOp{.inode = file, .mask = kSetAtime, .atime = {0, 1'000'000'000}}) ==
        EINVAL);
  CHECK(fs.error(SetAttrOp{.inode = file, .mask = kSetMtime, .mtime = {0, 1'000'000'000}}) ==
        EINVAL);
  CHECK(fs.error(SetAttrOp{.inode = file, .mask = kSetFlags, .flags = FS_IMMUTABLE_FL}) ==
        EOPNOTSUPP);
  CHECK(fs.content() == before);
  CHECK(size(bounded, 16 * kMiB) == 0);
  CHECK(size(file, kFileBytesMax) == 0);
  CHECK(fs.error(SetAttrOp{.inode = file, .mask = kSetFlags, .flags = FS_NODUMP_FL}) == 0);
  CHECK(fs.attributes(file).flags == FS_NODUMP_FL);
}

TEMPLATE_TEST_CASE("truncate grows, shrinks and marks the times", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto session = fs.session();
  auto file = fs.file(kRootInode, "file");
  REQUIRE(fs.error(OpenWriteOp{file}, session) == 0);
  REQUIRE(fs.error(ReportOp{.inode = file, .sizeBytes = 100'000, .usedBytes = 102'400}, session) ==
          0);
  auto size = [&](uint64_t bytes) {
    REQUIRE(fs.error(SetAttrOp{.inode = file, .mask = kSetSize, .sizeBytes = bytes}) == 0);
    CHECK(fs.attributes(file).mtime == fs.now);
    CHECK(fs.attributes(file).ctime == fs.now);
    return fs.attributes(file);
  };
  CHECK(size(200'000).sizeBytes == 200'000);
  CHECK(size(200'000).usedBytes == 102'400);
  CHECK(size(5'000).usedBytes == 8'192);
  CHECK(size(0).usedBytes == 0);
  CHECK(size(0).sizeBytes == 0);
}

TEMPLATE_TEST_CASE("growing never shrinks, and is no setting that overtakes reports", "[mds]",
                   MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto op = fs.creation(kRootInode, "file", S_IFREG | 0644);
  op.layout = twoComponents();
  auto file = fs.run(op).inode;
  auto grow = [&](uint64_t bytes) {
    return fs.error(SetAttrOp{.inode = file, .mask = kGrowSize, .sizeBytes = bytes});
  };
  REQUIRE(grow(5'000) == 0);
  CHECK(fs.attributes(file).mtime == fs.now);
  auto grown = fs.attributes(file).mtime;
  REQUIRE(grow(4'000) == 0);
  CHECK(fs.attributes(file).sizeBytes == 5'000);
  CHECK(fs.attributes(file).mtime == grown);
  CHECK(fs.attributes(file).settings == 0);
  CHECK(grow(16 * kMiB + 1) == EFBIG);
  CHECK(fs.error(SetAttrOp{.inode = kRootInode, .mask = kGrowSize, .sizeBytes = 1}) == EISDIR);
}

TEMPLATE_TEST_CASE("privileges go with a foreign write and a new owner", "[mds]", MemStore,
                   LmdbStore) {
  Fixture<TestType> fs;
  auto program = fs.make(kRootInode, "program", S_IFREG | 06755);
  auto locked =
      fs.make(kRootInode, "locked", S_IFREG | 06745);  // set-group-ID without group execution
  auto dir = fs.make(kRootInode, "dir", S_IFDIR | 02775);
  auto mode = [&](InodeId inode) { return fs.attributes(inode).mode & 07777; };
  REQUIRE(fs.error(SetXattrOp{.inode = program, .name = "security.capability", .value = "x"}) == 0);
  auto truncate = [&](InodeId inode, uint32_t mask) {
    REQUIRE(fs.error(SetAttrOp{.inode = inode, .mask = kSetSize | mask, .sizeBytes = 1}) == 0);
  };
  truncate(program, 0);
  CHECK(mode(program) == 06755);
  truncate(program, kKillPrivileges);
  CHECK(mode(program) == 0755);
  CHECK(getxattr(*fs.view(), program, "security.capability").errnoOrZero() == ENODATA);
  truncate(locked, kKillPrivileges);
  CHECK(mode(locked) == 02745);
  REQUIRE(fs.error(SetAttrOp{.inode = dir, .mask = kSetUid, .uid = 9}) == 0);
  CHECK(mode(dir) == 02775);
  REQUIRE(fs.error(SetAttrOp{
              .inode = program, .mask = kSetUid | kSetMode, .mode = 04755, .uid = 9}) == 0);
  CHECK(mode(program) == 04755);
  auto session = fs.session();
  REQUIRE(fs.error(OpenWriteOp{program}, session) == 0);
  REQUIRE(fs.error(ReportOp{.inode = program, .sizeBytes = 2, .killPrivileges = true}, session) ==
          0);
  CHECK(mode(program) == 0755);
}

TEMPLATE_TEST_CASE("a report raises the size and tells what exists", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto session = fs.session();
  auto op = fs.creation(kRootInode, "file", S_IFREG | 0644);
  op.layout = twoComponents();
  op.writing = true;
  auto file = fs.run(op, session).inode;
  ReportOp report{.inode = file, .sizeBytes = 1000, .usedBytes = 4096, .mtime = {77, 88}};
  report.exists = {{0, 0}};
  report.stillWriting = true;
  CHECK(fs.run(report, session) == Outcome{.inode = file});
  auto node = *loadNode(*fs.view(), file);
  CHECK(node.attributes.sizeBytes == 1000);
  CHECK(node.attributes.usedBytes == 4096);
  CHECK(node.attributes.mtime == Time{77, 88});
  CHECK(node.attributes.ctime == fs.now);
  CHECK(node.layout.components[0].exists == std::vector{true});
  CHECK(writersOf(*fs.view(), file) == std::vector{session});

  // Lower and unknown values leave what is there; the mark goes with the last report.
  REQUIRE(fs.error(ReportOp{.inode = file, .sizeBytes = 10}, session) == 0);
  CHECK(loadNode(*fs.view(), file)->attributes == node.attributes);
  CHECK(writersOf(*fs.view(), file).empty());
  CHECK(writtenBy(*fs.view(), session).empty());
  CHECK(fs.error(report, session) == ESTALE);
}

TEMPLATE_TEST_CASE("a report from before a size or time was set does not undo it", "[mds]",
                   MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto writer = fs.session(), other = fs.session();
  auto file = fs.file(kRootInode, "file");
  REQUIRE(fs.error(OpenWriteOp{file}, writer) == 0);
  ReportOp late{.inode = file, .sizeBytes = 1000, .usedBytes = 4096, .mtime = {1, 0}};
  late.stillWriting = true;
  REQUIRE(fs.error(SetAttrOp{.inode = file, .mask = kSetSize, .sizeBytes = 10}, other) == 0);
  auto cut = fs.attributes(file);
  CHECK(cut.settings == 1);
  CHECK(fs.run(late, writer) == Outcome{.inode = file, .value = kSizeToBeAsked});
  CHECK(fs.attributes(file) == cut);
  // What was written after that only the objects know: the MDS's own mark says so, and holds until
  // an answer that is not older than the size.
  CHECK(writersOf(*fs.view(), file) == std::vector{kMdsItself, writer});
  REQUIRE(fs.error(SetAttrOp{.inode = file, .mask = kSetSize, .sizeBytes = 20}, other) == 0);
  CHECK(fs.run(ReportOp{.inode = file, .sizeBytes = 500, .settings = 1}).value == kSizeToBeAsked);
  CHECK(fs.run(ReportOp{.inode = file, .sizeBytes = 500, .settings = 2}).value == 0);
  CHECK(fs.attributes(file).sizeBytes == 500);
  CHECK(writersOf(*fs.view(), file) == std::vector{writer});

  REQUIRE(fs.error(SetAttrOp{.inode = file, .mask = kSetMtime, .mtime = {7, 7}}, other) == 0);
  late.sizeBytes = 0;
  REQUIRE(fs.run(late, writer).value == 0);
  CHECK(fs.attributes(file).mtime == Time{7, 7});
  late.mtime = {fs.now.seconds + 1, 0};  // a write after that
  REQUIRE(fs.run(late, writer).value == 0);
  CHECK(fs.attributes(file).mtime == late.mtime);

  // Part of it is older: the rest does not count either, and the last report leaves the mark.
  ReportOp mixed{.inode = file, .sizeBytes = 9000, .settings = 3, .overtaken = true};
  REQUIRE(fs.run(mixed, writer).value == kSizeToBeAsked);
  CHECK(fs.attributes(file).sizeBytes == 500);
  CHECK(writersOf(*fs.view(), file) == std::vector{kMdsItself});
}

TEMPLATE_TEST_CASE("a report is refused if it makes no sense", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto session = fs.session(), stranger = fs.session();
  auto op = fs.creation(kRootInode, "file", S_IFREG | 0644);
  op.layout = twoComponents();
  op.writing = true;
  auto file = fs.run(op, session).inode;
  auto before = fs.content();
  auto exists = [&](uint8_t component, uint32_t stripe) {
    ReportOp report{.inode = file, .sizeBytes = 1, .exists = {{component, stripe}}};
    return fs.error(report, session);
  };
  CHECK(exists(0, 1) == EINVAL);
  CHECK(exists(1, 0) == EINVAL);  // not instantiated
  CHECK(exists(2, 0) == EINVAL);
  CHECK(fs.error(ReportOp{.inode = file, .sizeBytes = kFileBytesMax + 1}, session) == EFBIG);
  CHECK(fs.error(ReportOp{.inode = file, .mtime = {0, 1'000'000'000}}, session) == EINVAL);
  CHECK(fs.error(ReportOp{.inode = file, .sizeBytes = 1}, stranger) == ESTALE);
  CHECK(fs.error(ReportOp{.inode = {999}, .sizeBytes = 1}, session) == ESTALE);
  CHECK(fs.content() == before);
  REQUIRE(fs.error(UnlinkOp{kRootInode, "file", {}}, session) == 0);
  CHECK(fs.error(ReportOp{.inode = file, .sizeBytes = 1}, session) == ESTALE);
}

TEMPLATE_TEST_CASE("only regular files are marked as written", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto session = fs.session();
  auto dir = fs.directory(kRootInode, "dir");
  auto fifo = fs.make(kRootInode, "fifo", S_IFIFO | 0644);
  CHECK(fs.error(OpenWriteOp{dir}, session) == EISDIR);
  CHECK(fs.error(OpenWriteOp{fifo}, session) == EINVAL);
  CHECK(fs.error(OpenWriteOp{{999}}, session) == ESTALE);
  CHECK(writtenBy(*fs.view(), session).empty());
}

TEMPLATE_TEST_CASE("the MDS's own mark outlives the writer until the size is known", "[mds]",
                   MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto session = fs.session();
  auto file = fs.file(kRootInode, "file");
  REQUIRE(fs.error(OpenWriteOp{file}, session) == 0);
  REQUIRE(fs.error(OpenWriteOp{file}) == 0);
  REQUIRE(fs.error(EndSessionOp{session}) == 0);
  CHECK(writersOf(*fs.view(), file) == std::vector{SessionId{}});
  CHECK(problemsOf(*fs.view()).empty());
  CHECK(fs.error(SetLayoutOp{file, placedLayout()}, fs.session()) == EBUSY);
  CHECK(fs.error(ReportOp{.inode = file, .sizeBytes = 5}) == 0);
  CHECK(fs.attributes(file).sizeBytes == 5);
  CHECK(writersOf(*fs.view(), file).empty());
  CHECK(fs.error(ReportOp{.inode = file, .sizeBytes = 6}) == ESTALE);
}

}  // namespace trainfs::mds
