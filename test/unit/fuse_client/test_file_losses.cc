// What a server or a session has lost is an error at the next fsync of each handle.
#include "file_io_fixture.h"

using namespace trainfs;
using namespace trainfs::client;
using namespace trainfs::client::test;

TEST_CASE("changes lost with a session are an error at the next fsync, once", "[client]") {
  FileFixture f;
  f.inode->losses.add();
  f.inode->pastUnknown = false;
  Status status(Done{});
  f.files.sync(f.inode, f.handle, [&](Status result) { status = result; });
  CHECK(status.errnoOrZero() == EIO);
  f.files.sync(f.inode, f.handle, [&](Status result) { status = result; });
  CHECK(status.ok());
}

TEST_CASE("a server that lost what was not synced makes each open handle's next fsync EIO") {
  FileFixture f;
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
  FileFixture f;
  f.openToWrite();
  f.write(0, "gone");
  f.data.verifier = 0;
  Status status = Done{};
  f.files.sync(f.inode, f.handle, [&](Status result) { status = result; });
  f.script.answerAll();
  REQUIRE(status.errnoOrZero() == EIO);
}

TEST_CASE("what a server lost is told although the kernel forgot the file in between", "[client]") {
  FileFixture f;
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
