// What the client knows of inodes, and which of two answers counts.
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "fuse_client/inodes.h"

using namespace trainfs;
using namespace trainfs::client;

namespace {

constexpr InodeId kFile{7};

Node fileNode(uint64_t sizeBytes, int64_t ctime = 1) {
  auto layout = std::make_shared<Layout>();
  layout->generation = 1;
  layout->components.push_back(
      {.stripeCount = 2, .chains = {ChainId{0}, ChainId{1}}, .exists = {false, false}});
  return {.attributes = {.inode = kFile,
                         .mode = S_IFREG | 0644,
                         .links = 1,
                         .sizeBytes = sizeBytes,
                         .ctime = {ctime, 0}},
          .layout = layout};
}

}  // namespace

TEST_CASE("an answer that a change has overtaken is not taken over", "[client]") {
  Inodes inodes;
  auto inode = inodes.obtain(kFile);
  auto before = inodes.now();
  inodes.takeChange(*inode, fileNode(100, 2));
  auto taken = inodes.take(*inode, fileNode(50, 1), before);
  CHECK(taken.attributes.sizeBytes == 100);
  CHECK(taken.current);
  taken = inodes.take(*inode, fileNode(60, 3), inodes.now());
  CHECK(taken.attributes.sizeBytes == 60);
}

TEST_CASE("answers to two changes may arrive the other way round", "[client]") {
  Inodes inodes;
  auto inode = inodes.obtain(kFile);
  inodes.takeChange(*inode, fileNode(100, 5));
  CHECK(inodes.takeChange(*inode, fileNode(50, 4)).attributes.sizeBytes == 100);
}

TEST_CASE("what an overtaken answer says of an inode that is not known must not be cached",
          "[client]") {
  Inodes inodes;
  auto inode = inodes.obtain(kFile);
  inodes.take(*inode, fileNode(10), inodes.now());
  auto before = inodes.now();
  inodes.forgetState(kFile);
  CHECK(!inodes.take(*inode, fileNode(10), before).current);
  CHECK(inodes.take(*inode, fileNode(10), inodes.now()).current);
}

TEST_CASE("an answer from before an inode was dropped is not about the one met afterwards",
          "[client]") {
  Inodes inodes;
  auto inode = inodes.obtain(kFile);
  inodes.addLookup(inode);
  auto before = inodes.now();
  inodes.takeChange(*inode, fileNode(100, 2));
  inode.reset();
  inodes.forget(kFile, 1);
  REQUIRE(inodes.find(kFile) == nullptr);
  CHECK(!inodes.take(*inodes.obtain(kFile), fileNode(50, 1), before).current);
}

TEST_CASE("what was written here lies on top of what the MDS knows", "[client]") {
  Inodes inodes;
  auto inode = inodes.obtain(kFile);
  inode->unreported = {.endBytes = 500, .mtime = {9, 9}, .exists = {{0, 1}}, .changes = 1};
  auto taken = inodes.take(*inode, fileNode(100), inodes.now());
  CHECK(taken.attributes.sizeBytes == 500);
  CHECK(taken.attributes.mtime == Time{9, 9});
  CHECK(inode->layout->components[0].exists == std::vector<bool>{false, true});
}

TEST_CASE("an inode stays while the kernel, a handle or an unreported change holds it",
          "[client]") {
  Inodes inodes;
  inodes.addLookup(inodes.obtain(kFile));
  inodes.addLookup(inodes.obtain(kFile));
  inodes.addHandle(inodes.find(kFile), true);
  inodes.forget(kFile, 2);
  REQUIRE(inodes.find(kFile));
  {
    auto inode = inodes.find(kFile);
    inode->unreported.changes = 1;
    inode->toldWriting = true;
    inodes.noteUnreported(inode);
    auto left = inodes.dropHandle(inode, true);
    CHECK(left.last);
    CHECK(left.lastWriter);
  }
  REQUIRE(inodes.find(kFile));
  // Closed, but a server that starts anew must hear that its last report is still to come.
  auto opens = inodes.openFiles(MdsEvents::Told::kMore);
  REQUIRE(opens.size() == 1);
  CHECK(opens[0].writing);
  REQUIRE(inodes.unreported().size() == 1);
  inodes.find(kFile)->unreported.reported = 1;
  CHECK(inodes.unreported().empty());
  CHECK(inodes.find(kFile) == nullptr);
}

TEST_CASE("a list that replaces what the MDS knew leaves out what it need not know", "[client]") {
  Inodes inodes;
  auto inode = inodes.obtain(kFile);
  inode->toldOpen = inode->toldWriting = true;  // closed, and about to be released
  CHECK(inodes.openFiles(MdsEvents::Told::kMore).empty());
  CHECK(inode->toldOpen);
  CHECK(inodes.openFiles(MdsEvents::Told::kAll).empty());
  CHECK_FALSE(inode->toldOpen);
  CHECK_FALSE(inode->toldWriting);  // or the next writer would not be told
}

TEST_CASE("too many open files are not listed for an unlink", "[client]") {
  Inodes inodes;
  for (uint64_t i = 10; i < 14; ++i) inodes.addHandle(inodes.obtain(InodeId{i}), false);
  CHECK(inodes.openInodes(4)->size() == 4);
  CHECK(!inodes.openInodes(3));
  CHECK(inodes.isOpen(InodeId{12}));
  CHECK(!inodes.isOpen(InodeId{14}));
}

TEST_CASE("a name replaced makes the counts of links of all hard-linked inodes unknown",
          "[client]") {
  Inodes inodes;
  auto single = inodes.obtain(InodeId{20}), linked = inodes.obtain(kFile);
  auto node = fileNode(1);
  inodes.take(*single, node, inodes.now());
  node.attributes.links = 2;
  inodes.take(*linked, node, inodes.now());
  inodes.forgetHardLinked();
  CHECK(single->known);
  CHECK(!linked->known);
}

TEST_CASE("what a question says of the size is not lost to the answer of a report beside it",
          "[client]") {
  Inodes inodes;
  auto inode = inodes.obtain(kFile);
  auto node = fileNode(10);
  inodes.take(*inode, node, inodes.now());
  auto askedAt = inodes.now();
  auto record = node, glimpsed = node;  // what others have not reported is in the second only
  glimpsed.attributes.sizeBytes = 30;
  SECTION("whichever comes first") {
    inodes.takeChange(*inode, record);
    CHECK(inodes.take(*inode, glimpsed, askedAt).attributes.sizeBytes == 30);
  }
  SECTION("or last") {
    inodes.take(*inode, glimpsed, askedAt);
    CHECK(inodes.takeChange(*inode, record).attributes.sizeBytes == 30);
  }
  SECTION("unless the size was set") {
    inodes.take(*inode, glimpsed, askedAt);
    record.attributes.settings = 1;
    CHECK(inodes.takeChange(*inode, record).attributes.sizeBytes == 10);
    CHECK(inodes.take(*inode, glimpsed, askedAt).attributes.sizeBytes == 10);
  }
  std::lock_guard lock(inode->mutex);
  CHECK(inode->present().sizeBytes == (inode->attributes.settings == 1 ? 10 : 30));
}

TEST_CASE("a write of this client's own does not hide what others have changed", "[client]") {
  Inodes inodes;
  auto inode = inodes.obtain(kFile);
  auto node = fileNode(10);
  inodes.take(*inode, node, inodes.now());
  auto askedAt = inodes.now();
  {
    std::lock_guard lock(inode->mutex);
    inode->unreported.add(0, 20, {2, 0});
  }
  node.attributes.mode = S_IFREG | 0600;
  node.attributes.sizeBytes = 15;
  auto seen = inodes.take(*inode, node, askedAt).attributes;
  CHECK(seen.mode == (S_IFREG | 0600));
  CHECK(seen.sizeBytes == 20);
}
