// Data workers behind real ports.
#include <catch2/catch_test_macros.hpp>
#include <future>
#include <set>

#include "bulk_client.h"
#include "lib/eventually.h"
#include "worker_fixture.h"

using namespace trainfs;
using namespace trainfs::oss;

TEST_CASE("many requests of one connection are in flight at once") {
  WorkerFixture fixture;
  BulkClient client(fixture.port());
  REQUIRE(client.hello() == BulkStatus::kOk);
  std::map<uint64_t, Bytes> written;
  std::set<uint64_t> open;
  for (int i = 0; i < 40; ++i) {
    Bytes data = patternOf(200'000, i);
    auto frame = client.writeRequest(objectNumber(1), i * 200'000, data);
    open.insert(frame.header.requestId);
    client.send(std::move(frame));
    written[i * 200'000] = std::move(data);
  }
  while (!open.empty()) {
    auto reply = client.receive();
    REQUIRE(reply.header.status == BulkStatus::kOk);
    REQUIRE(open.erase(reply.header.requestId) == 1);
  }
  std::map<uint64_t, uint64_t> offsets;
  for (auto& [offset, data] : written) {
    auto frame = client.request(BulkOp::kRead, {extentOf(objectNumber(1), offset, 200'000)});
    offsets[frame.header.requestId] = offset;
    client.send(std::move(frame));
  }
  for (size_t i = 0; i < written.size(); ++i) {
    auto reply = client.receive();
    uint64_t offset = offsets.at(reply.header.requestId);
    REQUIRE((reply.payload == written[offset]));
    REQUIRE(reply.sums == sumsOf(offset, reply.payload));
  }
}

TEST_CASE("one frame reads many small objects, present or not") {
  WorkerFixture fixture;
  BulkClient client(fixture.port());
  REQUIRE(client.hello() == BulkStatus::kOk);
  std::vector<BulkExtent> extents;
  Bytes expected;
  for (uint64_t i = 1; i <= 63; ++i) {
    Bytes data = patternOf(i * 100, i);
    auto written = client.call(client.writeRequest(objectNumber(i), 0, data));
    REQUIRE(written.header.status == BulkStatus::kOk);
    extents.push_back(extentOf(objectNumber(i), 0, 100'000));
    expected.insert(expected.end(), data.begin(), data.end());
  }
  extents.push_back(extentOf(objectNumber(1000), 0, 100'000));
  auto reply = client.call(client.request(BulkOp::kRead, extents));
  REQUIRE(reply.header.status == BulkStatus::kOk);
  REQUIRE((reply.payload == expected));
  REQUIRE(reply.extents[62].lengthBytes == 6300);
  REQUIRE(reply.extents[63].lengthBytes == 0);
  REQUIRE(reply.extents[63].flags == kExtentMissing);

  extents.back().flags = kExtentMustExist;
  reply = client.call(client.request(BulkOp::kRead, extents));
  REQUIRE(reply.header.status == BulkStatus::kIoError);
  REQUIRE(reply.header.errorCode == EIO);
}

TEST_CASE("punch, stat and sync") {
  WorkerFixture fixture;
  BulkClient client(fixture.port());
  REQUIRE(client.hello() == BulkStatus::kOk);
  auto id = objectNumber(1);
  Bytes data = patternOf(300'000, 1);
  REQUIRE(client.call(client.writeRequest(id, 0, data)).header.status == BulkStatus::kOk);
  auto done = [&](BulkOp op, BulkExtent extent) {
    return client.call(client.request(op, {extent})).header.status == BulkStatus::kOk;
  };
  REQUIRE(done(BulkOp::kPunch, extentOf(id, 100'000, 50'000)));
  REQUIRE(done(BulkOp::kSync, extentOf(id, 0, 0)));
  std::fill(data.begin() + 100'000, data.begin() + 150'000, std::byte{0});
  auto reply = client.call(client.request(BulkOp::kRead, {extentOf(id, 0, 400'000)}));
  REQUIRE((reply.payload == data));
  REQUIRE(reply.sums == sumsOf(0, data));
  auto figures = client.call(client.request(BulkOp::kStat, {extentOf(id, 0, 0)}));
  REQUIRE(figures.extents[0].offsetBytes == 300'000);
  REQUIRE(figures.extents[0].lengthBytes >= 61);
  REQUIRE(figures.extents[0].lengthBytes <= 80);
}

TEST_CASE("payload that the network damaged is not written") {
  WorkerFixture fixture;
  BulkClient client(fixture.port());
  REQUIRE(client.hello() == BulkStatus::kOk);
  auto frame = client.writeRequest(objectNumber(1), 0, patternOf(100'000, 1));
  frame.payload[70'000] ^= std::byte{1};
  REQUIRE(client.call(std::move(frame)).header.status == BulkStatus::kBadSum);
  auto reply = client.call(client.request(BulkOp::kRead, {extentOf(objectNumber(1), 0, 10)}));
  REQUIRE(reply.extents[0].flags == kExtentMissing);
}

TEST_CASE("garbage and rule breakers are cut off, others are not") {
  WorkerFixture fixture(2);
  BulkClient good(fixture.port());
  REQUIRE(good.hello() == BulkStatus::kOk);
  ObjectId foreign = objectNumber(1);
  while (workerOf(foreign, 2) == 0) ++foreign.inode.value;
  {
    BulkClient client(fixture.port(), 2);
    client.sendBytes(patternOf(200, 1).data(), 200);
    REQUIRE(client.isCut());
  }
  {
    BulkClient client(fixture.port(), 3);
    client.send(client.request(BulkOp::kStat, {extentOf(objectNumber(1), 0, 0)}));
    REQUIRE(client.isCut());  // no hello
  }
  {
    BulkClient client(fixture.port(), 4);
    REQUIRE(client.hello() == BulkStatus::kOk);
    client.send(client.request(BulkOp::kStat, {extentOf(foreign, 0, 0)}));
    REQUIRE(client.isCut());
  }
  {
    BulkClient client(fixture.port(), 5);
    REQUIRE(client.hello() == BulkStatus::kOk);
    auto frame = client.request(BulkOp::kRead, {extentOf(objectNumber(1), 0, 9 * kMiB)});
    client.send(std::move(frame));
    REQUIRE(client.isCut());
  }
  ObjectId own = foreign;
  while (workerOf(own, 2) != 0) ++own.inode.value;
  REQUIRE(good.call(good.request(BulkOp::kStat, {extentOf(own, 0, 0)})).header.status ==
          BulkStatus::kOk);
}

TEST_CASE("who may speak is what the MDS says, once per connection and registration") {
  WorkerFixture fixture;
  auto stat = [](BulkClient& client) {
    return client.call(client.request(BulkOp::kStat, {extentOf(objectNumber(1), 0, 0)}))
        .header.status;
  };
  BulkClient client(fixture.port(), 7);
  REQUIRE(client.hello() == BulkStatus::kOk);
  for (int i = 0; i < 5; ++i) REQUIRE(stat(client) == BulkStatus::kOk);
  REQUIRE(fixture.verifier().asked() == 1);

  fixture.ost().lease.begin(inAnHour());
  REQUIRE(stat(client) == BulkStatus::kOk);
  REQUIRE(fixture.verifier().asked() == 2);

  fixture.verifier().evict(7);
  fixture.ost().lease.begin(inAnHour());
  REQUIRE(stat(client) == BulkStatus::kStaleSession);
  BulkClient again(fixture.port(), 7);
  REQUIRE(again.hello() == BulkStatus::kStaleSession);

  fixture.verifier().setUnknown(true);
  BulkClient unlucky(fixture.port(), 8);
  REQUIRE(unlucky.hello() == BulkStatus::kRetry);
  fixture.verifier().setUnknown(false);
  REQUIRE(unlucky.hello() == BulkStatus::kOk);
}

TEST_CASE("a chain that is not served, or not in that version, is refused when executed") {
  WorkerFixture fixture;
  BulkClient client(fixture.port());
  REQUIRE(client.hello() == BulkStatus::kOk);
  auto frame = client.request(BulkOp::kStat, {extentOf(objectNumber(1), 0, 0)});
  frame.header.chain = 5;
  REQUIRE(client.call(frame).header.status == BulkStatus::kStaleChain);
  frame.header.chain = 0;
  frame.header.chainVersion = 2;
  REQUIRE(client.call(frame).header.status == BulkStatus::kStaleChain);
  fixture.ost().chainVersion = 2;
  REQUIRE(client.call(frame).header.status == BulkStatus::kOk);
  fixture.ost().lease.extendTo(std::chrono::steady_clock::now());
  REQUIRE(client.call(frame).header.status == BulkStatus::kRetry);
}

TEST_CASE("a newer connection of a lane closes the older one and sees all that it did") {
  WorkerFixture fixture;
  for (int round = 0; round < 10; ++round) {
    BulkClient older(fixture.port()), other(fixture.port(), 1, 1, 9);
    REQUIRE(older.hello() == BulkStatus::kOk);
    REQUIRE(other.hello() == BulkStatus::kOk);
    for (int i = 0; i < 8; ++i)
      older.send(older.writeRequest(objectNumber(1), 0, patternOf(kMiB, 1)));
    BulkClient newer(fixture.port());
    REQUIRE(newer.hello() == BulkStatus::kOk);
    // Whatever of the older one's writes comes, came before this.
    Bytes data = patternOf(kMiB, 2 + round);
    REQUIRE(newer.call(newer.writeRequest(objectNumber(1), 0, data)).header.status ==
            BulkStatus::kOk);
    REQUIRE(older.isCut());
    auto reply = newer.call(newer.request(BulkOp::kRead, {extentOf(objectNumber(1), 0, kMiB)}));
    REQUIRE((reply.payload == data));
    auto figures = other.call(other.request(BulkOp::kStat, {extentOf(objectNumber(1), 0, 0)}));
    REQUIRE(figures.header.status == BulkStatus::kOk);
  }
}

TEST_CASE("hellos that wait for a hung disk do not add up") {
  WorkerFixture fixture;
  auto reaches = [](auto figure, uint64_t wanted) {
    return test::eventually([&] { return figure() == wanted; }, std::chrono::seconds(30));
  };
  BulkClient older(fixture.port());
  REQUIRE(older.hello() == BulkStatus::kOk);
  REQUIRE(older.call(older.writeRequest(objectNumber(1), 0, patternOf(kMiB, 1))).header.status ==
          BulkStatus::kOk);
  std::promise<void> disk, hangs;
  fixture.ost().index->change({.object = objectNumber(2)},
                              [&hangs, goesOn = disk.get_future().share()](int) {
                                hangs.set_value();
                                goesOn.wait();
                              });
  hangs.get_future().wait();  // or the sync may come into the same batch, and be answered first
  older.send(older.request(BulkOp::kSync, {extentOf(objectNumber(1), 0, 0)}));
  REQUIRE(reaches([&] { return fixture.executing(); }, 1));
  std::vector<std::unique_ptr<BulkClient>> impatient;
  for (int i = 0; i < 20; ++i) {
    impatient.push_back(std::make_unique<BulkClient>(fixture.port()));
    impatient.back()->send(impatient.back()->request(BulkOp::kHello, {}));
  }
  for (int i = 0; i < 19; ++i) REQUIRE(impatient[i]->isCut());
  // The one whose request is executed, and the newest.
  CHECK(reaches([&] { return fixture.connections(); }, 2));
  impatient.clear();
  CHECK(reaches([&] { return fixture.connections(); }, 1));
  disk.set_value();
  BulkClient newer(fixture.port());
  CHECK(newer.hello() == BulkStatus::kOk);
}

TEST_CASE("after a fence is answered nothing of that session is executed") {
  WorkerFixture fixture;
  BulkClient fenced(fixture.port(), 1, 3), other(fixture.port(), 2, 3);
  REQUIRE(fenced.hello() == BulkStatus::kOk);
  REQUIRE(other.hello() == BulkStatus::kOk);
  for (int i = 0; i < 8; ++i)
    fenced.send(fenced.writeRequest(objectNumber(1), 0, patternOf(kMiB, 1)));
  fixture.fence(SessionId{1}, 3);
  Bytes data = patternOf(kMiB, 2);
  REQUIRE(other.call(other.writeRequest(objectNumber(1), 0, data)).header.status ==
          BulkStatus::kOk);
  REQUIRE(fenced.isCut());
  BulkClient again(fixture.port(), 1, 3);
  REQUIRE(again.hello() == BulkStatus::kStaleSession);
  BulkClient next(fixture.port(), 1, 4);
  REQUIRE(next.hello() == BulkStatus::kOk);
  auto reply = next.call(next.request(BulkOp::kRead, {extentOf(objectNumber(1), 0, kMiB)}));
  REQUIRE((reply.payload == data));
}

TEST_CASE("clients that do not take their replies do not stop others") {
  WorkerFixture fixture;
  BulkClient writer(fixture.port());
  REQUIRE(writer.hello() == BulkStatus::kOk);
  REQUIRE(writer.call(writer.writeRequest(objectNumber(1), 0, patternOf(kMiB, 1))).header.status ==
          BulkStatus::kOk);
  std::vector<std::unique_ptr<BulkClient>> deaf;
  for (uint32_t lane = 1; lane <= 2; ++lane) {
    deaf.push_back(std::make_unique<BulkClient>(fixture.port(), 1, 1, lane));
    REQUIRE(deaf.back()->hello() == BulkStatus::kOk);
    for (int i = 0; i < 300; ++i)
      deaf.back()->send(deaf.back()->request(BulkOp::kRead, {extentOf(objectNumber(1), 0, kMiB)}));
  }
  for (int i = 0; i < 20; ++i) {
    auto reply = writer.call(writer.request(BulkOp::kRead, {extentOf(objectNumber(1), 0, kMiB)}));
    REQUIRE(reply.header.status == BulkStatus::kOk);
  }
  for (int i = 0; i < 300; ++i) REQUIRE(deaf[0]->receive().payload.size() == kMiB);
}

TEST_CASE("an orderly stop answers what is in flight and leaves every object clean") {
  WorkerFixture fixture(2);
  {
    BulkClient client(fixture.port(0)), second(fixture.port(1));
    REQUIRE(client.hello() == BulkStatus::kOk);
    REQUIRE(second.hello() == BulkStatus::kOk);
    for (uint64_t i = 1; i <= 50; ++i) {
      auto id = objectNumber(i);
      auto& mine = workerOf(id, 2) == 0 ? client : second;
      REQUIRE(mine.call(mine.writeRequest(id, 5, patternOf(1000, i))).header.status ==
              BulkStatus::kOk);
    }
  }
  fixture.stop();
  ObjectIndex::Reader reader(*fixture.ost().index);
  for (uint64_t i = 1; i <= 50; ++i) {
    auto found = reader.find(objectNumber(i));
    REQUIRE(found);
    REQUIRE_FALSE(found->record.dirty);
    REQUIRE(found->record.sizeBytes == 1005);
  }
}
