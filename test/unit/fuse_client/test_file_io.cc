// FileIo above an MDS client and a data client that answer when the test says so.
#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "fake_servers.h"
#include "fuse_client/file_io.h"

using namespace trainfs;
using namespace trainfs::client;
using namespace trainfs::client::test;
using namespace std::chrono_literals;
using Names = std::vector<std::string>;

namespace {

constexpr InodeId kFile{7};

struct Fixture {
  Script script;
  FakeMds mds{script};
  FakeData data{script};
  Inodes inodes;
  Coherence coherence;
  std::vector<InodeId> modesForgotten;
  FileIo files{mds, data, inodes, coherence, [this](InodeId inode, std::function<void()> done) {
                 modesForgotten.push_back(inode);
                 done();
               }};
  InodePtr inode = inodes.obtain(kFile);
  Losses::Mark handle = inode->losses.newMark();
  Layout layout;

  // Two stripes of 64 KiB.
  Fixture() {
    coherence.allow(coherence.version());
    coherence.trustUntil(BootClock::time_point::max());
    layout.generation = 1;
    layout.components.push_back({.stripeBytes = kBlockBytes,
                                 .stripeCount = 2,
                                 .chains = {ChainId{0}, ChainId{1}},
                                 .exists = {false, false}});
    mds.node = {.attributes = {.inode = kFile, .mode = S_IFREG | 0644, .links = 1, .ctime = {1, 0}},
                .layout = nullptr};
    tell();
    inodes.take(*inode, mds.node, inodes.now());
  }
  // The MDS's answers from now on.
  void tell() { mds.node.layout = std::make_shared<const Layout>(layout); }

  void openToWrite() {
    files.open(inode, true, [](Status status) { REQUIRE(status.ok()); });
    REQUIRE(script.answer("open to write"));
  }
  void write(uint64_t offset, const std::string& text) {
    Result<size_t> written(Errno(EINPROGRESS));
    files.write(inode, offset, std::as_bytes(std::span(text)), false,
                [&](auto result) { written = result; });
    REQUIRE(script.answer("write"));
    REQUIRE(written.ok());
    REQUIRE(*written == text.size());
  }
  std::string read(uint64_t offset, size_t bytes) {
    std::string text(bytes, '?');
    Result<size_t> got(Errno(EINPROGRESS));
    files.read(inode, offset, std::as_writable_bytes(std::span(text)),
               [&](auto result) { got = result; });
    script.answer("read");
    REQUIRE(got.ok());
    text.resize(*got);
    return text;
  }
  const ReportOp& lastReport() { return std::get<ReportOp>(mds.executed.back()); }
};

}  // namespace

TEST_CASE("a new file's size, data and holes are seen before anything is reported", "[client]") {
  Fixture f;
  f.openToWrite();
  f.write(70'000, "hello");
  CHECK(f.read(69'998, 100) == std::string("\0\0hello", 7));
  CHECK(f.read(70'005, 10).empty());
  CHECK(f.inode->present().sizeBytes == 70'005);
  size_t before = f.data.readPieces;
  CHECK(f.read(0, 10) ==
        std::string(10, '\0'));  // the first stripe was never written: nobody is asked
  CHECK(f.data.readPieces == before);
}

TEST_CASE("the last close reports size and objects, then lets go", "[client]") {
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
  f.layout.components[0].exists = {true, true};
  f.tell();
  f.inodes.take(*f.inode, f.mds.node, f.inodes.now());
  f.files.sync(f.inode, f.handle, [](Status) {});
  CHECK(f.data.syncedObjects == 2);
}

TEST_CASE("truncation has the MDS cut the objects that reach beyond", "[client]") {
  Fixture f;
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
  Fixture f;
  f.mds.node.attributes.sizeBytes = 1000;
  f.inodes.take(*f.inode, f.mds.node, f.inodes.now());
  f.files.setAttributes(f.inode, {}, {.inode = kFile, .mask = kSetSize, .sizeBytes = 0},
                        [](auto) {});
  CHECK(f.script.asked() == Names{"setattr"});
  CHECK(std::get<SetAttrOp>(f.mds.executed.back()).mask == kSetSize);
}

TEST_CASE("bytes that a failed write may have left do not come to light when the file grows",
          "[client]") {
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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

TEST_CASE("a write into a component without chains asks for them first", "[client]") {
  Fixture f;
  auto chains = std::exchange(f.layout.components[0].chains, {});
  auto exists = std::exchange(f.layout.components[0].exists, {});
  f.tell();
  f.inodes.take(*f.inode, f.mds.node, f.inodes.now());
  f.openToWrite();
  std::string text = "abc";
  f.files.write(f.inode, 0, std::as_bytes(std::span(text)), false, [](auto) {});
  REQUIRE(f.script.asked() == Names{"instantiate"});
  f.layout.components[0].chains = chains;
  f.layout.components[0].exists = exists;
  f.tell();
  f.script.answer("instantiate");
  CHECK(f.script.asked() == Names{"write"});
}

TEST_CASE(
    "a write without CAP_FSETID is answered once the set-user-ID bit is gone, here and in the "
    "kernel",
    "[client]") {
  Fixture f;
  f.mds.node.attributes.mode = S_IFREG | 04755;
  f.openToWrite();
  std::string text = "abc";
  bool answered = false;
  f.files.write(f.inode, 0, std::as_bytes(std::span(text)), true, [&](auto) { answered = true; });
  f.script.answer("write");
  CHECK(!answered);
  CHECK(f.lastReport().killPrivileges);
  f.mds.node.attributes.mode = S_IFREG | 0755;
  f.script.answer("report");
  CHECK(answered);
  CHECK(f.modesForgotten == std::vector{kFile});
}

TEST_CASE("changes lost with a session are an error at the next fsync, once", "[client]") {
  Fixture f;
  f.inode->losses.add();
  f.inode->pastUnknown = false;
  Status status(Done{});
  f.files.sync(f.inode, f.handle, [&](Status result) { status = result; });
  CHECK(status.errnoOrZero() == EIO);
  f.files.sync(f.inode, f.handle, [&](Status result) { status = result; });
  CHECK(status.ok());
}

TEST_CASE("while others are about, every read asks for the attributes and every open is told",
          "[client]") {
  Fixture f;
  f.coherence.forbid();
  f.files.open(f.inode, false, [](Status) {});
  CHECK(f.script.asked() == Names{"open"});
  f.script.answer("open");
  std::string text(10, '?');
  f.files.read(f.inode, 0, std::as_writable_bytes(std::span(text)), [](auto) {});
  CHECK(f.script.asked() == Names{"getattr"});
  f.script.answer("getattr");
  f.files.close(f.inode, false);
  CHECK(f.script.asked() == Names{"release"});
}

TEST_CASE("a server that lost what was not synced makes each open handle's next fsync EIO") {
  Fixture f;
  f.openToWrite();
  auto sync = [&](const Losses::Mark& handle) {
    Status status = Done{};
    f.files.sync(f.inode, handle, [&](Status result) { status = result; });
    f.script.answerAll();
    return status.errnoOrZero();
  };
  auto other = f.inode->losses.newMark();
  f.write(0, "lost");
  f.data.verifier = 2;  // its machine was started anew
  REQUIRE(sync(f.handle) == EIO);
  REQUIRE(sync(f.handle) == 0);
  REQUIRE(sync(other) == EIO);
  REQUIRE(sync(other) == 0);
  auto later = f.inode->losses.newMark();
  REQUIRE(sync(later) == 0);

  // Between two writes; the second of which is safe.
  f.write(0, "lost");
  f.data.verifier = 3;
  f.write(0, "kept");
  REQUIRE(sync(f.handle) == EIO);
  REQUIRE(sync(f.handle) == 0);
}

TEST_CASE("a written object that is not there at its sync is a loss") {
  Fixture f;
  f.openToWrite();
  f.write(0, "gone");
  f.data.verifier = 0;
  Status status = Done{};
  f.files.sync(f.inode, f.handle, [&](Status result) { status = result; });
  f.script.answerAll();
  REQUIRE(status.errnoOrZero() == EIO);
}

TEST_CASE(
    "an unlinked file is released when its last handle goes, also if that was before the answer",
    "[client]") {
  Fixture f;
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

TEST_CASE("what a server lost is told although the kernel forgot the file in between", "[client]") {
  Fixture f;
  f.inodes.addLookup(f.inode);
  f.openToWrite();
  f.write(0, "lost");
  f.layout.components[0].exists = {true, false};
  f.tell();
  f.files.close(f.inode, true);
  f.script.answerAll();
  std::weak_ptr<Inode> before = f.inode;
  f.inode.reset();
  f.inodes.forget(kFile, 1);
  f.inodes.unreported();  // as the reporter does
  f.inodes.dropIdle();
  REQUIRE(before.expired());

  f.inode = f.inodes.obtain(kFile);
  f.inodes.take(*f.inode, f.mds.node, f.inodes.now());
  f.handle = f.inode->losses.newMark();
  f.data.verifier = 2;  // its machine was started anew
  auto sync = [&] {
    Status status = Done{};
    f.files.sync(f.inode, f.handle, [&](Status result) { status = result; });
    f.script.answerAll();
    return status.errnoOrZero();
  };
  CHECK(sync() == EIO);
  CHECK(sync() == 0);
}

TEST_CASE("a file that a write still runs on is the same one when it is met again", "[client]") {
  Fixture f;
  f.inodes.addLookup(f.inode);
  f.openToWrite();
  std::string text = "abc";
  f.files.write(f.inode, 0, std::as_bytes(std::span(text)), false, [](auto) {});
  f.files.close(f.inode, true);
  std::weak_ptr<Inode> before = f.inode;
  f.inode.reset();
  f.inodes.forget(kFile, 1);
  CHECK(f.inodes.obtain(kFile) == before.lock());
  f.script.answerAll();
  f.inodes.unreported();  // as the reporter does
  f.inodes.dropIdle();
  CHECK(before.expired());
}

TEST_CASE("what there is no room to remember is suspected, not forgotten", "[client]") {
  Forgotten forgotten;
  auto object = [](uint64_t inode) { return ObjectId{.inode = {inode}, .generation = 1}; };
  for (uint64_t i = 1; i <= Forgotten::kObjectsMax; ++i)
    forgotten.keep({i}, {.unsynced = {{object(i), {ChainId{3}, 9}}}});
  CHECK(forgotten.dropped(ChainId{3}) == 0);
  forgotten.keep({0x100000}, {.unsynced = {{object(0x100000), {ChainId{3}, 10}}}});
  CHECK(forgotten.take({1}).empty());
  CHECK(forgotten.dropped(ChainId{3}) == 9);
  CHECK(forgotten.take({2}).unsynced.size() == 1);
  CHECK(forgotten.take({2}).empty());
}

namespace {

TransferPtr transferIn(const std::shared_ptr<BufferPool>& pool,
                       const std::shared_ptr<Places>& places) {
  return std::make_shared<Transfer>(pool->take(), places->take());
}

}  // namespace

TEST_CASE("a killed caller's write that no OST was asked for leaves at once", "[client]") {
  Fixture f;
  f.openToWrite();
  auto pool = std::make_shared<BufferPool>(4096);
  auto places = std::make_shared<Places>(1, std::chrono::milliseconds(0));
  OrderedAccess::Pass before;
  f.inode->access->exclusive([&](OrderedAccess::Pass pass) { before = std::move(pass); });
  bool answered = false;
  auto transfer = transferIn(pool, places);
  std::span<const std::byte> data(transfer->memory(), 10);
  f.files.write(f.inode, 0, data, false, [&](auto) { answered = true; }, transfer);
  REQUIRE(places->take() == nullptr);
  f.files.withdraw(f.inode, *transfer, FileIo::Direction::kWrite);
  CHECK(places->take() != nullptr);
  before.reset();
  CHECK(f.script.asked().empty());
  CHECK(!answered);
  // Nothing is left in the line.
  bool next = false;
  f.inode->access->exclusive([&](OrderedAccess::Pass) { next = true; });
  CHECK(next);
}

TEST_CASE("a killed caller's write that may happen is waited for by what comes later", "[client]") {
  Fixture f;
  f.openToWrite();
  auto pool = std::make_shared<BufferPool>(4096);
  auto places = std::make_shared<Places>(1, std::chrono::milliseconds(0));
  auto transfer = transferIn(pool, places);
  std::span<const std::byte> data(transfer->memory(), 10);
  f.files.write(f.inode, 0, data, false, [](auto) {}, transfer);
  f.files.withdraw(f.inode, *transfer, FileIo::Direction::kWrite);
  transfer.reset();
  CHECK(f.data.withdrawals == 1);
  CHECK(places->take() == nullptr);  // its memory may still be sent
  std::string text = "later";
  f.files.write(f.inode, 0, std::as_bytes(std::span(text)), false, [](auto) {});
  CHECK(f.script.asked() == Names{"write"});
  REQUIRE(f.script.answer("write"));
  CHECK(places->take() != nullptr);
  CHECK(f.script.asked() == Names{"write"});
}

TEST_CASE("a killed caller's write that waited for the layout is not sent", "[client]") {
  Fixture f;
  f.layout.components[0].chains.clear();
  f.tell();
  f.inodes.take(*f.inode, f.mds.node, f.inodes.now());
  f.openToWrite();
  auto pool = std::make_shared<BufferPool>(4096);
  auto places = std::make_shared<Places>(1, std::chrono::milliseconds(0));
  auto transfer = transferIn(pool, places);
  std::span<const std::byte> data(transfer->memory(), 10);
  Result<size_t> written(Errno(EINPROGRESS));
  f.files.write(f.inode, 0, data, false, [&](auto result) { written = result; }, transfer);
  CHECK(f.script.asked() == Names{"instantiate"});
  f.files.withdraw(f.inode, *transfer, FileIo::Direction::kWrite);
  CHECK(places->take() != nullptr);
  f.layout.components[0].chains = {ChainId{0}, ChainId{1}};
  f.tell();
  REQUIRE(f.script.answer("instantiate"));
  CHECK(f.script.asked().empty());
  CHECK(written.error() == Errno(EINTR));
}

TEST_CASE("reports in passing do not add up while there is no MDS", "[client]") {
  Fixture f;
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
  Fixture f;
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

TEST_CASE("after the time that the MDS gave nothing is taken from caches", "[client]") {
  Fixture f;
  f.coherence.trustUntil(BootClock::now() - 1ns);  // as for a process that stood still
  f.files.attributes(f.inode, [](auto) {});
  CHECK(f.script.asked() == Names{"getattr"});
  CHECK_FALSE(Coherence::Answering(f.coherence).mayCache());
}
