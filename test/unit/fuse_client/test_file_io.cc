// What reads and writes of a file ask the servers for.
#include "file_io_fixture.h"

using namespace trainfs;
using namespace trainfs::client;
using namespace trainfs::client::test;

TEST_CASE("a new file's size, data and holes are seen before anything is reported", "[client]") {
  FileFixture f;
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

TEST_CASE("a write into a component without chains asks for them first", "[client]") {
  FileFixture f;
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
  FileFixture f;
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

TEST_CASE("while others are about, every read asks for the attributes and every open is told",
          "[client]") {
  FileFixture f;
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

TEST_CASE("a file that a write still runs on is the same one when it is met again", "[client]") {
  FileFixture f;
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

TEST_CASE("after the time that the MDS gave nothing is taken from caches", "[client]") {
  FileFixture f;
  f.coherence.trustUntil(BootClock::now() - 1ns);  // as for a process that stood still
  f.files.attributes(f.inode, [](auto) {});
  CHECK(f.script.asked() == Names{"getattr"});
  CHECK_FALSE(Coherence::Answering(f.coherence).mayCache());
}
