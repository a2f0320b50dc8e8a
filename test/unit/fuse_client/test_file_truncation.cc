// Sizes and times that are set, beside writes and what other clients do.
#include "file_io_fixture.h"

using namespace trainfs;
using namespace trainfs::client;
using namespace trainfs::client::test;

TEST_CASE("truncation has the MDS cut the objects that reach beyond", "[client]") {
  FileFixture f;
  f.openToWrite();
  f.write(0, "a");
  f.write(kBlockBytes, "b");
  f.write(2 * kBlockBytes, "c");
  Result<Inodes::Taken> taken(Errno(EINPROGRESS));
  f.files.setAttributes(f.inode, {}, {.inode = kFile, .mask = kSetSize, .sizeBytes = 10},
                        [&](auto result) { taken = result; });
  REQUIRE(f.script.asked() == Names{"setattr"});
  auto& set = std::get<SetAttrOp>(f.mds.executed.back());
  CHECK(set.mask == (kSetSize | kCutObjects));
  CHECK(set.keepBytes == 10);
  f.mds.node.attributes.sizeBytes = 10;
  f.script.answer("setattr");
  REQUIRE(taken.ok());
  CHECK(taken->attributes.sizeBytes == 10);
  CHECK(f.inode->unreported.any());  // which objects exist
}

TEST_CASE("a file without objects is truncated without asking an OST", "[client]") {
  FileFixture f;
  f.mds.node.attributes.sizeBytes = 1000;
  f.inodes.take(*f.inode, f.mds.node, f.inodes.now());
  f.files.setAttributes(f.inode, {}, {.inode = kFile, .mask = kSetSize, .sizeBytes = 0},
                        [](auto) {});
  CHECK(f.script.asked() == Names{"setattr"});
  CHECK(std::get<SetAttrOp>(f.mds.executed.back()).mask == kSetSize);
}

TEST_CASE("bytes that a failed write may have left do not come to light when the file grows",
          "[client]") {
  FileFixture f;
  f.openToWrite();
  f.write(0, "a");
  f.data.error = ENOSPC;
  std::string text(200'000, 'x');
  Result<size_t> written(size_t{0});
  f.files.write(f.inode, 10, std::as_bytes(std::span(text)), false,
                [&](auto result) { written = result; });
  f.script.answer("write");
  CHECK(written.errnoOrZero() == ENOSPC);
  f.data.error = 0;
  f.files.setAttributes(f.inode, {}, {.inode = kFile, .mask = kSetSize, .sizeBytes = 100'000},
                        [](auto) {});
  REQUIRE(f.script.asked() == Names{"setattr"});
  auto& set = std::get<SetAttrOp>(f.mds.executed.back());
  CHECK(set.mask == (kSetSize | kCutObjects));
  CHECK(set.keepBytes == 1);
}

TEST_CASE("a write waits for the fate of a truncation that failed", "[client]") {
  FileFixture f;
  f.openToWrite();
  f.write(0, "abc");
  f.mds.executeError = EIO;
  f.files.setAttributes(f.inode, {}, {.inode = kFile, .mask = kSetSize, .sizeBytes = 1},
                        [](auto) {});
  f.script.answer("setattr");
  auto write = [&](Result<size_t>& written) {
    f.files.write(f.inode, 0, std::as_bytes(std::span("new", 3)), false,
                  [&](auto result) { written = result; });
  };
  Result<size_t> refused(size_t{0}), written(size_t{0});
  write(refused);
  REQUIRE(f.script.asked() == Names{"settled"});
  f.script.answer("settled");
  CHECK(refused.errnoOrZero() == EIO);

  f.mds.executeError = 0;
  write(written);
  REQUIRE(f.script.answer("settled"));
  REQUIRE(f.script.asked() == Names{"getattr"});
  f.script.answer("getattr");
  REQUIRE(f.script.asked() == Names{"write"});
  f.script.answer("write");
  CHECK(*written == 3);
  f.write(3, "d");  // asks nobody
}

TEST_CASE("times that were set are not overwritten by those of earlier writes", "[client]") {
  FileFixture f;
  f.openToWrite();
  f.write(0, "a");
  f.files.setAttributes(f.inode, {}, {.inode = kFile, .mask = kSetMtime, .mtime = {981, 0}},
                        [](auto) {});
  f.mds.node.attributes.mtime = {981, 0};
  f.script.answer("setattr");
  f.files.close(f.inode, true);
  CHECK(f.lastReport().mtime == Time{});
  CHECK(f.inode->present().mtime == Time{981, 0});
}

TEST_CASE("a file that is allocated longer is so at the MDS before it is answered", "[client]") {
  FileFixture f;
  f.openToWrite();
  f.write(0, "abc");
  Status extended(Errno(EINPROGRESS));
  auto extend = [&](uint64_t bytes) {
    f.files.extend(f.inode, bytes, [&](Status status) { extended = status; });
  };
  extend(3);
  CHECK(extended.ok());
  extended = Errno(EINPROGRESS);
  extend(5000);
  CHECK(extended.errnoOrZero() == EINPROGRESS);
  CHECK(std::get<SetAttrOp>(f.mds.executed.back()).mask == kGrowSize);
  f.mds.node.attributes.sizeBytes = 5000;
  f.script.answer("setattr");
  CHECK(extended.ok());
  CHECK(f.inode->present().sizeBytes == 5000);

  // Zeroing beyond what the layout can have changes nothing.
  f.files.punch(f.inode, {0, 6000}, true, [&](Status status) { extended = status; });
  f.mds.executeError = EFBIG;
  f.script.answer("setattr");
  CHECK(extended.errnoOrZero() == EFBIG);
  CHECK(f.script.asked().empty());
}

TEST_CASE("what another client has cut is reported under its old count before a size is told",
          "[client]") {
  FileFixture f;
  f.coherence.forbid();
  f.openToWrite();
  f.write(0, std::string(1000, 'x'));
  f.mds.node.attributes.settings = 1;  // truncated by another client
  Result<Inodes::Taken> taken(Errno(EINPROGRESS));
  f.files.attributes(f.inode, [&](auto result) { taken = result; });
  REQUIRE(f.script.answer("getattr"));
  REQUIRE(f.script.asked() == Names{"report"});
  CHECK(f.lastReport().sizeBytes == 1000);
  CHECK(f.lastReport().settings == 0);
  f.script.answer("report");
  REQUIRE(f.script.answer("getattr"));
  REQUIRE(taken.ok());
  CHECK(taken->attributes.sizeBytes == 0);
  // What is written now is written under the new count.
  f.write(10, "abc");
  CHECK(f.inode->present().sizeBytes == 13);
  CHECK(f.inode->unreported.settings == 1);
}

TEST_CASE("a write that was sent before a truncation is known and answered after it", "[client]") {
  FileFixture f;
  f.coherence.forbid();
  f.openToWrite();
  std::string text(1000, 'x');
  auto write = [&](uint64_t offset) {
    f.files.write(f.inode, offset, std::as_bytes(std::span(text)), false, [](auto) {});
  };
  write(5000);
  f.mds.node.attributes.settings = 1;
  f.files.attributes(f.inode, [](auto) {});
  f.script.answer("getattr");
  write(0);
  f.script.answer("write");
  CHECK(f.inode->overtaken());
  f.script.answer("write");
  CHECK(f.inode->overtaken());
  CHECK(f.inode->present().sizeBytes == 1000);
  f.files.report(f.inode, [](Status) {});
  CHECK(f.lastReport().overtaken);
  CHECK(f.lastReport().settings == 1);
  CHECK(f.lastReport().sizeBytes == 1000);
  f.script.answer("report");
  CHECK(!f.inode->overtaken());
}

TEST_CASE("a time that this client sets itself leaves its unreported size in force", "[client]") {
  FileFixture f;
  f.openToWrite();
  f.write(0, std::string(1000, 'x'));
  f.mds.node.attributes.settings = 1;
  f.mds.node.attributes.mtime = {981, 0};
  f.files.setAttributes(f.inode, {}, {.inode = kFile, .mask = kSetMtime, .mtime = {981, 0}},
                        [](auto) {});
  f.script.answer("setattr");
  CHECK(!f.inode->overtaken());
  CHECK(f.inode->present().sizeBytes == 1000);
  f.files.report(f.inode, [](Status) {});
  CHECK(f.lastReport().settings == 1);
  CHECK(f.lastReport().sizeBytes == 1000);
}
