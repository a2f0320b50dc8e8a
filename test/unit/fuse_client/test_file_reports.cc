// Files that are opened, synced, reported and let go of.
#include "file_io_fixture.h"

using namespace trainfs;
using namespace trainfs::client;
using namespace trainfs::client::test;

TEST_CASE("the last close reports size and objects, then lets go", "[client]") {
  FileFixture f;
  f.openToWrite();
  f.write(0, "abc");
  f.files.close(f.inode, true);
  REQUIRE(f.script.asked() == Names{"report"});
  CHECK(f.lastReport().sizeBytes == 3);
  CHECK(f.lastReport().usedBytes == 4096);
  CHECK(f.lastReport().exists == std::vector<std::pair<uint8_t, uint32_t>>{{0, 0}});
  CHECK(!f.lastReport().stillWriting);
  CHECK(f.inode->toldWriting);  // until it is answered
  f.script.answer("report");
  CHECK(!f.inode->toldWriting);
  CHECK(!f.inode->unreported.any());
  CHECK(f.script.asked() == Names{"release"});
}

// It was sent first once, took the writer's mark with it, and the report was refused: the size was
// lost.
TEST_CASE("a reader that closes during the last report does not release before it", "[client]") {
  FileFixture f;
  f.openToWrite();
  f.write(100'000, "not in order, so that the OSTs are asked first");
  f.files.open(f.inode, false, [](Status) {});
  f.files.close(f.inode, true);
  REQUIRE(f.script.asked() == Names{"stat"});
  f.files.close(f.inode, false);
  CHECK(f.script.asked() == Names{"stat"});
  f.script.answer("stat");
  CHECK(f.script.asked() == Names{"report"});
  f.script.answer("report");
  CHECK(f.script.asked() == Names{"release"});
}

// A rename by another thread did, between the two steps of the last close: the release came first,
// and the size was lost.
TEST_CASE("a release that gets in line before the last report reports first", "[client]") {
  FileFixture f;
  f.openToWrite();
  f.write(0, "abc");
  f.inodes.dropHandle(f.inode, true);  // as the last close begins
  f.files.noteReplaced(kFile);
  REQUIRE(f.script.asked() == Names{"report"});
  CHECK(f.lastReport().sizeBytes == 3);
  f.script.answer("report");
  CHECK(f.script.asked() == Names{"release"});
}

TEST_CASE("a file opened again to be written waits for the last report and the release",
          "[client]") {
  FileFixture f;
  f.openToWrite();
  f.write(0, "abc");
  f.files.close(f.inode, true);
  bool open = false;
  f.files.open(f.inode, true, [&](Status status) { open = status.ok(); });
  CHECK(f.script.asked() == Names{"report"});
  f.script.answer("report");  // no release: it is open again
  CHECK(f.script.asked() == Names{"open to write"});
  f.script.answer("open to write");
  CHECK(open);
}

// The resumption had told of the writer in line, and the release, sent again after it, took its
// mark away: the last report was refused, and the size lost.
TEST_CASE("an open that waits for a release is told after it, also if a resumption told of it",
          "[client]") {
  FileFixture f;
  f.openToWrite();
  f.files.close(f.inode, true);
  REQUIRE(f.script.asked() == Names{"release"});
  bool open = false;
  f.files.open(f.inode, true, [&](Status status) { open = status.ok(); });
  auto told = f.inodes.openFiles(MdsEvents::Told::kAll);
  REQUIRE(told.size() == 1);
  CHECK(told[0].writing);
  f.script.answer("release");
  CHECK(!open);
  REQUIRE(f.script.asked() == Names{"open to write"});
  f.script.answer("open to write");
  CHECK(open);
  CHECK(f.inode->toldWriting);
}

TEST_CASE("a reader that a resumption told of is told again after a release", "[client]") {
  FileFixture f;
  f.openToWrite();
  f.files.close(f.inode, true);
  f.files.open(f.inode, false, [](Status) {});
  REQUIRE(f.inodes.openFiles(MdsEvents::Told::kAll).size() == 1);
  f.script.answer("release");
  REQUIRE(f.script.asked() == Names{"open"});
  f.script.answer("open");
  f.files.close(f.inode, false);
  CHECK(f.script.asked() == Names{"release"});
}

TEST_CASE("fsync syncs every object touched since the last one, then reports", "[client]") {
  FileFixture f;
  f.openToWrite();
  f.inode->pastUnknown = false;
  f.write(0, "a");
  f.write(kBlockBytes, "b");
  bool done = false;
  f.files.sync(f.inode, f.handle, [&](Status status) { done = status.ok(); });
  REQUIRE(f.script.asked() == Names{"sync"});
  CHECK(f.data.syncedObjects == 2);
  // A second one must not be answered by there being nothing left to sync.
  bool second = false;
  f.files.sync(f.inode, f.handle, [&](Status status) { second = status.ok(); });
  CHECK(!second);
  f.script.answer("sync");
  CHECK(!done);
  CHECK(f.lastReport().stillWriting);
  f.mds.node.attributes.sizeBytes = kBlockBytes + 1;
  f.layout.components[0].exists = {true, true};
  f.tell();
  f.script.answer("report");
  CHECK(done);
  CHECK(second);
  CHECK(f.script.asked().empty());
}

TEST_CASE("a sync that fails is tried again by the next fsync", "[client]") {
  FileFixture f;
  f.openToWrite();
  f.inode->pastUnknown = false;
  f.write(0, "a");
  Status first(Done{});
  f.data.error = EIO;
  f.files.sync(f.inode, f.handle, [&](Status status) { first = status; });
  f.script.answerAll();
  CHECK(first.errnoOrZero() == EIO);
  f.data.error = 0;
  f.files.sync(f.inode, f.handle, [](Status) {});
  CHECK(f.script.asked() == Names{"sync"});
  CHECK(f.data.syncedObjects == 1);
}

TEST_CASE("an inode met again syncs whatever objects it has", "[client]") {
  FileFixture f;
  f.layout.components[0].exists = {true, true};
  f.tell();
  f.inodes.take(*f.inode, f.mds.node, f.inodes.now());
  f.files.sync(f.inode, f.handle, [](Status) {});
  CHECK(f.data.syncedObjects == 2);
}

TEST_CASE(
    "an unlinked file is released when its last handle goes, also if that was before the answer",
    "[client]") {
  FileFixture f;
  f.files.open(f.inode, false, [](Status) {});
  f.mds.node.attributes.links = 0;
  SECTION("closed after the unlink") {
    f.inodes.takeChange(*f.inode, f.mds.node);
    f.files.noteUnlinked(f.inode);
    CHECK(f.script.asked().empty());
    f.files.close(f.inode, false);
  }
  SECTION("closed while the unlink was under way") {
    f.files.close(f.inode, false);
    CHECK(f.script.asked().empty());
    f.inodes.takeChange(*f.inode, f.mds.node);
    f.files.noteUnlinked(f.inode);
  }
  CHECK(f.script.asked() == Names{"release"});
}

TEST_CASE("reports in passing do not add up while there is no MDS", "[client]") {
  FileFixture f;
  f.openToWrite();
  f.write(0, "text");
  for (int i = 0; i < 1000; ++i) f.files.reportInPassing(f.inode);
  CHECK(f.script.asked() == Names{"report"});
  f.write(10, "more");
  REQUIRE(f.script.answer("report"));
  CHECK(f.script.asked().empty());  // 999 that had waited would report this, too
  f.files.reportInPassing(f.inode);
  CHECK(f.script.asked() == Names{"report"});
}

TEST_CASE("a file that was closed at an eviction is released in the new session", "[client]") {
  FileFixture f;
  f.openToWrite();
  f.write(0, "abc");
  f.files.close(f.inode, true);
  REQUIRE(f.script.asked() == Names{"report"});
  auto told = f.inodes.openFiles(MdsEvents::Told::kAll);
  REQUIRE(told.size() == 1);
  CHECK(told[0].writing);
  f.files.loseUnreported();
  f.mds.executeError = EIO;  // it was sent in the old session
  REQUIRE(f.script.answer("report"));
  CHECK(f.script.answer("release"));
  CHECK(f.script.asked() == Names{});
  CHECK(f.inodes.openFiles(MdsEvents::Told::kAll).empty());
}
