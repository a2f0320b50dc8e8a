#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <future>

#include "store_fixture.h"

using namespace trainfs;
using namespace trainfs::oss;

TEST_CASE("what was written is read back with the sums of its pieces") {
  StoreFixture fixture;
  std::mt19937_64 random(1);
  Bytes data = randomBytes(random, 300'000);
  auto id = objectNumber(5);
  REQUIRE(fixture.write(id, 1000, data) == 0);
  auto back = fixture.read(id, 1000, data.size());
  REQUIRE(back.error == 0);
  REQUIRE(back.data == data);
  REQUIRE(back.sumsRight);
  REQUIRE(fixture.read(id, 0, 1000).data == Bytes(1000));
  REQUIRE(fixture.read(id, 301'000, 10).data.empty());
  REQUIRE(fixture.read(id, 300'990, 100).data.size() == 10);
}

TEST_CASE("reading does not make an object") {
  StoreFixture fixture;
  auto back = fixture.read(objectNumber(1), 0, 4096);
  REQUIRE(back.missing);
  REQUIRE(fixture.onlyFile().empty());
}

TEST_CASE("sums of whole clean blocks are those that the writer gave") {
  StoreFixture fixture;
  std::mt19937_64 random(2);
  Bytes data = randomBytes(random, 3 * kBlockBytes + 17);
  auto id = objectNumber(5);
  REQUIRE(fixture.write(id, 0, data) == 0);
  REQUIRE(fixture.sync(id) == 0);
  REQUIRE_FALSE(recordOf(fixture, id).dirty);
  REQUIRE(recordOf(fixture, id).sizeBytes == data.size());
  ObjectIndex::Reader reader(fixture.index());
  REQUIRE(reader.find(id)->firstSums == sumsOf(0, data));

  // A damaged byte goes out with the old sum, for the client to find.
  fixture.reopen();
  flipByte(fixture.onlyFile(), kBlockBytes + 5);
  auto back = fixture.read(id, 0, data.size());
  REQUIRE(back.error == 0);
  REQUIRE_FALSE(back.sumsRight);
  // Where only a part of the block is wanted, the server has to look.
  REQUIRE(fixture.read(id, kBlockBytes + 100, 10).error == EIO);
  REQUIRE(fixture.read(id, 100, 10).sumsRight);
}

TEST_CASE("a file that lost its end or itself is an error, not zeros") {
  StoreFixture fixture;
  std::mt19937_64 random(3);
  auto id = objectNumber(7);
  REQUIRE(fixture.write(id, 0, randomBytes(random, 200'000)) == 0);
  REQUIRE(fixture.sync(id) == 0);
  fixture.reopen();
  std::filesystem::resize_file(fixture.onlyFile(), 100'000);
  REQUIRE(fixture.read(id, 0, 1000).sumsRight);
  REQUIRE(fixture.read(id, 150'000, 1000).error == EIO);
  fixture.reopen();
  std::filesystem::remove(fixture.onlyFile());
  REQUIRE(fixture.read(id, 0, 1000).error == EIO);
  REQUIRE(fixture.write(id, 0, randomBytes(random, 10)) == EIO);
}

TEST_CASE("a change to a clean object marks it before it happens") {
  StoreFixture fixture;
  std::mt19937_64 random(4);
  auto id = objectNumber(8);
  Bytes data = randomBytes(random, 2 * kBlockBytes);
  REQUIRE(fixture.write(id, 0, data) == 0);
  REQUIRE(fixture.sync(id) == 0);
  auto clean = recordOf(fixture, id);
  REQUIRE(fixture.write(id, 0, randomBytes(random, 100)) == 0);
  REQUIRE(recordOf(fixture, id).dirty);
  REQUIRE(fixture.sync(id) == 0);
  REQUIRE_FALSE(recordOf(fixture, id).dirty);
  REQUIRE(recordOf(fixture, id).version == clean.version + 1);
}

TEST_CASE("after a crash a dirty object is what its file says") {
  StoreFixture fixture;
  std::mt19937_64 random(5);
  auto id = objectNumber(9);
  Bytes data = randomBytes(random, 4 * kBlockBytes);
  REQUIRE(fixture.write(id, 0, data) == 0);
  REQUIRE(fixture.sync(id) == 0);
  REQUIRE(fixture.write(id, kBlockBytes, Bytes(kBlockBytes)) == 0);
  fixture.reopen();
  // A torn write of an unsynced range is not corruption.
  flipByte(fixture.onlyFile(), kBlockBytes + 1);
  auto back = fixture.read(id, 0, data.size());
  REQUIRE(back.error == 0);
  REQUIRE(back.sumsRight);
  REQUIRE(fixture.read(id, kBlockBytes + 1, 1).sumsRight);
  REQUIRE(fixture.sync(id) == 0);
  REQUIRE_FALSE(recordOf(fixture, id).dirty);
  fixture.reopen();
  REQUIRE(fixture.read(id, 0, data.size()).data == back.data);
  REQUIRE(fixture.read(id, 0, data.size()).sumsRight);
}

TEST_CASE("objects that nobody changes any more are cleaned in the background") {
  StoreFixture fixture({.idle = std::chrono::milliseconds(0)});
  std::mt19937_64 random(6);
  for (uint64_t i = 1; i <= 100; ++i)
    REQUIRE(fixture.write(objectNumber(i), 0, randomBytes(random, 1000)) == 0);
  fixture.store().tick();
  fixture.reactor().runUntil([&] { return fixture.store().dirtyObjects() == 0; });
  for (uint64_t i = 1; i <= 100; ++i) REQUIRE_FALSE(recordOf(fixture, objectNumber(i)).dirty);
}

TEST_CASE("more objects than may be open, known or dirty at once") {
  StoreFixture fixture({.descriptors = 8, .objects = 16, .dirtyObjects = 10});
  std::mt19937_64 random(7);
  std::vector<Bytes> contents;
  for (uint64_t i = 1; i <= 60; ++i) {
    contents.push_back(randomBytes(random, 100 + i));
    REQUIRE(fixture.write(objectNumber(i), 0, contents.back()) == 0);
    REQUIRE(fixture.store().openDescriptors() <= 32);  // while the cleaner holds some
    REQUIRE(fixture.store().dirtyObjects() <= 10);
  }
  REQUIRE(fixture.wait(fixture.store().cleanAll()));
  for (uint64_t i = 1; i <= 60; ++i) {
    auto back = fixture.read(objectNumber(i), 0, 1000);
    REQUIRE(back.data == contents[i - 1]);
    REQUIRE(back.sumsRight);
  }
  REQUIRE(fixture.store().openDescriptors() <= 8);
}

TEST_CASE("a destroyed object is gone, also from the index") {
  StoreFixture fixture;
  std::mt19937_64 random(8);
  auto id = objectNumber(10);
  REQUIRE(fixture.write(id, 0, randomBytes(random, 40 * kMiB / 10)) == 0);
  REQUIRE(fixture.sync(id) == 0);
  REQUIRE(fixture.wait(fixture.store().destroy(id)).ok());
  REQUIRE(fixture.read(id, 0, 10).missing);
  REQUIRE(fixture.onlyFile().empty());
  ObjectIndex::Reader reader(fixture.index());
  REQUIRE(reader.find(id).errnoOrZero() == ENOENT);
  REQUIRE(fixture.wait(fixture.store().destroy(id)).ok());
}

TEST_CASE("a sparse object costs nothing for its holes") {
  StoreFixture fixture;
  std::mt19937_64 random(9);
  auto id = objectNumber(11);
  Bytes data = randomBytes(random, 1000);
  uint64_t far = 8 * 1024 * kGiB;
  REQUIRE(fixture.write(id, far, data) == 0);
  REQUIRE(fixture.sync(id) == 0);
  fixture.reopen();
  REQUIRE(fixture.read(id, far / 2, kMiB).data == Bytes(kMiB));
  REQUIRE(fixture.read(id, far / 2, kMiB).sumsRight);
  REQUIRE(fixture.read(id, far, 5000).data == data);
  REQUIRE(*fixture.truncate(id, far / 2 + 77));
  fixture.reopen();  // in doubt now
  REQUIRE(fixture.sync(id) == 0);
  auto back = fixture.read(id, far / 2, kMiB);
  REQUIRE(back.data.size() == 77);
  REQUIRE(back.sumsRight);
}

TEST_CASE("the verifier outlives the process, not the machine's run") {
  StoreFixture fixture;
  uint64_t verifier = fixture.index().verifier();
  REQUIRE(verifier != 0);
  fixture.reopen();
  REQUIRE(fixture.index().verifier() == verifier);
  fixture.reboot();
  REQUIRE(fixture.index().verifier() != verifier);
}

TEST_CASE("the verifier outlives the machine's run if the server stopped in order") {
  StoreFixture fixture;
  uint64_t verifier = fixture.index().verifier();
  REQUIRE(fixture.write(objectNumber(1), 0, Bytes(10)) == 0);
  REQUIRE(fixture.wait(fixture.store().cleanAll()));
  fixture.index().noteOrderlyStop();
  fixture.reboot();
  REQUIRE(fixture.index().verifier() == verifier);
  fixture.reboot();
  REQUIRE(fixture.index().verifier() != verifier);
}

TEST_CASE("each start is another one, but for one whose fate is not known") {
  StoreFixture fixture;
  auto start = [&] { return fixture.index().start(); };
  auto noteAccepted = [&] {
    std::promise<int> noted;
    fixture.index().noteAccepted([&](int error) { noted.set_value(error); });
    REQUIRE(noted.get_future().get() == 0);
  };
  uint64_t first = start().current;
  REQUIRE(first != 0);
  REQUIRE(start().accepted == 0);
  noteAccepted();
  REQUIRE(fixture.index().accepted());
  REQUIRE(start().current == first);

  fixture.reopen();
  uint64_t second = start().current;
  REQUIRE(second != first);
  REQUIRE(start().accepted == first);
  // The MDS may have accepted it, and nobody knows.
  fixture.reopen();
  REQUIRE(start().current == second);
  REQUIRE(start().accepted == first);
  // A copy that was taken now could be at the same: so this one is not served under.
  noteAccepted();
  REQUIRE_FALSE(fixture.index().accepted());
  REQUIRE(start().accepted == second);
  REQUIRE(start().current != second);
  noteAccepted();
  REQUIRE(fixture.index().accepted());
}

TEST_CASE("a change whose turn comes after the lease's end is not made") {
  StoreFixture fixture;
  auto id = objectNumber(1);
  REQUIRE(fixture.write(id, 0, Bytes(10)) == 0);
  fixture.lease().extendTo({});
  REQUIRE(fixture.write(id, 0, Bytes(20)) == EAGAIN);
  REQUIRE(fixture.truncate(id, 5).errnoOrZero() == EAGAIN);
  REQUIRE(fixture.punch(id, {0, 5}).errnoOrZero() == EAGAIN);
  REQUIRE(fixture.read(id, 0, 100).data == Bytes(10));
}

TEST_CASE("a change that was admitted in an earlier registration is not made in a later one") {
  StoreFixture fixture;
  auto id = objectNumber(1);
  REQUIRE(fixture.write(id, 0, Bytes(10)) == 0);
  REQUIRE(fixture.sync(id) == 0);
  Bytes data(20);
  auto sums = sumsOf(0, data);
  uint32_t old = fixture.registration();
  auto registerAnew = [&] { fixture.lease().begin(Lease::Instant::max()); };
  // While it waits for the index; then the object is dirty, and nothing is waited for any more.
  for (int round = 0; round < 2; ++round)
    REQUIRE(fixture.wait(fixture.store().write(id, 0, data, sums.data(), old), registerAnew)
                .errnoOrZero() == EAGAIN);
  REQUIRE(fixture.wait(fixture.store().truncate(id, 5, old)).errnoOrZero() == EAGAIN);
  REQUIRE(fixture.wait(fixture.store().punch(id, {0, 5}, old)).errnoOrZero() == EAGAIN);
  REQUIRE(fixture.wait(fixture.store().write(objectNumber(2), 0, data, sums.data(), old))
              .errnoOrZero() == EAGAIN);
  REQUIRE(fixture.read(objectNumber(2), 0, 1).missing);
  REQUIRE(fixture.read(id, 0, 100).data == Bytes(10));
  REQUIRE(fixture.write(id, 0, data) == 0);
}

TEST_CASE("a change that is refused after its sums were dropped damages nothing") {
  StoreFixture fixture;
  std::mt19937_64 random(22);
  auto id = objectNumber(1);
  constexpr uint64_t kSecondChunk = kChunkBlocks * kBlockBytes;
  Bytes data = randomBytes(random, 2 * kBlockBytes);
  REQUIRE(fixture.write(id, kSecondChunk, data) == 0);
  REQUIRE(fixture.truncate(id, 2 * kSecondChunk).ok());
  REQUIRE(fixture.sync(id) == 0);
  auto endLeaseDuring = [&](auto change) {
    fixture.reopen();
    // Loaded, so that the index is the first that the change waits for.
    REQUIRE(fixture.read(id, 0, 1).error == 0);
    fixture.lease().extendTo(Lease::Instant::max());
    auto ended = fixture.wait(change(fixture.store()), [&] { fixture.lease().extendTo({}); });
    REQUIRE(ended.errnoOrZero() == EAGAIN);
    for (bool synced : {false, true}) {
      auto back = fixture.read(id, kSecondChunk, data.size(), true);
      REQUIRE(back.error == 0);
      REQUIRE(back.sumsRight);
      REQUIRE(back.data == data);
      if (!synced) REQUIRE(fixture.sync(id) == 0);
      if (!synced) fixture.reopen();
    }
  };
  endLeaseDuring([&](ObjectStore& store) {
    return store.punch(id, {0, 2 * kSecondChunk}, fixture.registration());
  });
  endLeaseDuring(
      [&](ObjectStore& store) { return store.truncate(id, 100, fixture.registration()); });
}

TEST_CASE("a reader that doubts its sums has the server look") {
  StoreFixture fixture;
  std::mt19937_64 random(21);
  auto id = objectNumber(1);
  REQUIRE(fixture.write(id, 0, randomBytes(random, 3 * kBlockBytes)) == 0);
  REQUIRE(fixture.sync(id) == 0);
  flipByte(fixture.onlyFile(), kBlockBytes + 5);
  REQUIRE(fixture.read(id, 0, 3 * kBlockBytes, true).error == EIO);
  REQUIRE(fixture.read(id, 0, kBlockBytes, true).sumsRight);
  REQUIRE(fixture.read(id, 2 * kBlockBytes, kBlockBytes, true).sumsRight);
}

TEST_CASE("the sums of a very large object do not stay in memory") {
  StoreFixture fixture;
  std::mt19937_64 random(10);
  auto id = objectNumber(12);
  constexpr uint64_t kFarApart = kChunkBlocks * kBlockBytes, kCount = 300;
  Bytes data = randomBytes(random, 1000);
  for (uint64_t i = 0; i < kCount; ++i) REQUIRE(fixture.write(id, i * kFarApart, data) == 0);
  REQUIRE(fixture.sync(id) == 0);
  for (uint64_t i = 0; i < kCount; i += 7) {
    auto back = fixture.read(id, i * kFarApart, 2 * kBlockBytes);
    REQUIRE(back.sumsRight);
    REQUIRE(std::equal(data.begin(), data.end(), back.data.begin()));
  }
  REQUIRE(fixture.write(id, 5 * kFarApart + 10, data) == 0);
  REQUIRE(fixture.sync(id) == 0);
  fixture.reopen();
  REQUIRE(fixture.read(id, 5 * kFarApart, 1010).sumsRight);
  REQUIRE(fixture.read(id, 299 * kFarApart, 1000).sumsRight);
}
