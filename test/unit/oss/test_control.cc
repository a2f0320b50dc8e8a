// What an MDS orders of an OST, carried out by real data workers.
#include <kj/async-io.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <future>
#include <map>

#include "bulk_client.h"
#include "oss/control_rpc.h"
#include "worker_fixture.h"

using namespace trainfs;
using namespace trainfs::oss;

namespace {

using Errors = std::vector<int>;
using Cuts = std::vector<DataWorker::Cut>;

capnp::Data::Reader bytesOf(const std::array<uint8_t, kObjectIdBytes>& id) {
  return {id.data(), id.size()};
}

class ControlFixture {
 public:
  ControlFixture() {
    for (uint32_t i = 0; i < kWorkers; ++i) {
      clients_.push_back(std::make_unique<BulkClient>(workers_.port(i)));
      REQUIRE(clients_.back()->hello() == BulkStatus::kOk);
    }
  }

  // Not synced.
  Bytes write(ObjectId id, size_t bytes) {
    Bytes data = patternOf(bytes, id.inode.value);
    REQUIRE(call(id, clientOf(id).writeRequest(id, 0, data)).header.status == BulkStatus::kOk);
    return data;
  }
  void sync(ObjectId id) {
    auto frame = clientOf(id).request(BulkOp::kSync, {extentOf(id, 0, 0)});
    REQUIRE(call(id, std::move(frame)).header.status == BulkStatus::kOk);
  }
  Bytes read(ObjectId id) {
    auto frame = clientOf(id).request(BulkOp::kRead, {extentOf(id, 0, kMiB, kExtentVerify)});
    auto reply = call(id, std::move(frame));
    REQUIRE(reply.header.status == BulkStatus::kOk);
    REQUIRE(reply.sums == sumsOf(0, reply.payload));
    return reply.payload;
  }
  void damage(ObjectId id, off_t at) {
    for (auto& entry : std::filesystem::recursive_directory_iterator(ost().directory))
      if (entry.path().filename() == objectIdHex(id)) return flipByte(entry.path(), at);
    FAIL("no such object");
  }
  std::optional<ObjectRecord> recordOf(ObjectId id) {
    ObjectIndex::Reader reader(*ost().index);
    auto found = reader.find(id);
    if (!found) return std::nullopt;
    return found->record;
  }

  kj::Promise<Errors> startTruncate(const Cuts& cuts) {
    auto request = control_.truncateRequest();
    auto list = request.initCuts(cuts.size());
    for (size_t i = 0; i < cuts.size(); ++i) {
      list[i].setObject(bytesOf(encodeObjectId(cuts[i].object)));
      list[i].setSizeBytes(cuts[i].sizeBytes);
    }
    return request.send().then([](auto response) {
      Errors errors;
      for (int error : response.getErrors()) errors.push_back(error);
      return errors;
    });
  }
  Errors truncate(const Cuts& cuts) { return startTruncate(cuts).wait(io_.waitScope); }
  bool truncateThrows(const Cuts& cuts) { return throws(startTruncate(cuts)); }
  bool throws(kj::Promise<Errors> promise) {
    return promise.then([](Errors) { return false; }, [](kj::Exception&&) { return true; })
        .wait(io_.waitScope);
  }
  // Lets calls arrive that were sent.
  void turn() { io_.waitScope.poll(); }

  // ~0: there is none.
  uint64_t sizeOf(ObjectId id) {
    auto request = control_.statRequest();
    request.initObjects(1).set(0, bytesOf(encodeObjectId(id)));
    auto response = request.send().wait(io_.waitScope);
    REQUIRE(response.getResults().size() == 1);
    auto found = response.getResults()[0];
    REQUIRE(found.getError() == 0);
    return found.getExists() ? found.getSizeBytes() : ~uint64_t{0};
  }
  void destroy(const std::vector<ObjectId>& ids) {
    auto request = control_.destroyRequest();
    auto list = request.initObjects(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) list.set(i, bytesOf(encodeObjectId(ids[i])));
    request.send().wait(io_.waitScope);
  }

  Ost& ost() { return workers_.ost(); }
  WorkerThread& workerOfObject(ObjectId id) { return *workers_.workers()[workerOf(id, kWorkers)]; }

 private:
  static constexpr uint32_t kWorkers = 2;

  BulkClient& clientOf(ObjectId id) { return *clients_[workerOf(id, kWorkers)]; }
  Frame call(ObjectId id, Frame frame) { return clientOf(id).call(std::move(frame)); }

  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  WorkerFixture workers_{kWorkers};
  std::vector<std::unique_ptr<BulkClient>> clients_;
  rpc::OssControl::Client control_ =
      makeOssControl(0, workers_.ost().lease, workers_.sessions(), workers_.workers());
};

constexpr uint64_t kNone = ~uint64_t{0};

}  // namespace

TEST_CASE("objects are cut to what is said, those that are longer, durably") {
  ControlFixture f;
  std::map<uint64_t, Bytes> written;
  Cuts cuts;
  for (uint64_t i = 1; i <= 200; ++i) {
    auto id = objectNumber(i);
    if (i % 3 != 0) written[i] = f.write(id, i * 1000);
    if (i % 2 == 0 && i % 3 != 0) f.sync(id);
    cuts.push_back({id, 70'000});
  }
  REQUIRE(f.truncate(cuts) == Errors(cuts.size(), 0));
  for (uint64_t i = 1; i <= 200; ++i) {
    auto id = objectNumber(i);
    auto record = f.recordOf(id);
    REQUIRE(record.has_value() == written.contains(i));
    if (!record) {
      REQUIRE(f.sizeOf(id) == kNone);
      continue;
    }
    auto& data = written[i];
    if (data.size() > 70'000) data.resize(70'000);
    REQUIRE_FALSE(record->dirty);
    REQUIRE(record->sizeBytes == data.size());
    REQUIRE((f.read(id) == data));
  }
}

TEST_CASE("an object that is damaged where it would be cut stays, the others are cut") {
  ControlFixture f;
  Cuts cuts;
  for (uint64_t i = 1; i <= 10; ++i) {
    f.write(objectNumber(i), 200'000);
    f.sync(objectNumber(i));
    cuts.push_back({objectNumber(i), 100'000});
  }
  f.damage(objectNumber(4), kBlockBytes + 5);
  Errors expected(cuts.size(), 0);
  expected[3] = EIO;
  REQUIRE(f.truncate(cuts) == expected);
  for (uint64_t i = 1; i <= 10; ++i)
    REQUIRE(f.sizeOf(objectNumber(i)) == (i == 4 ? 200'000 : 100'000));
  // At the border of a block nothing of it is needed.
  REQUIRE(f.truncate({{objectNumber(4), kBlockBytes}}) == Errors{0});
  REQUIRE(f.read(objectNumber(4)).size() == kBlockBytes);
}

TEST_CASE("nothing is cut when the lease has run out") {
  ControlFixture f;
  auto id = objectNumber(1);
  f.write(id, 1000);
  f.ost().lease.extendTo(std::chrono::steady_clock::now());
  REQUIRE(f.truncateThrows({{id, 10}}));
  REQUIRE(f.truncateThrows({{objectNumber(2), 10}}));
  f.ost().lease.begin(inAnHour());
  REQUIRE(f.sizeOf(id) == 1000);
  REQUIRE(f.truncate({{id, 10}}) == Errors{0});
  REQUIRE(f.sizeOf(id) == 10);
}

TEST_CASE("nothing is cut in a later registration than the one in which it was asked for") {
  ControlFixture f;
  auto id = objectNumber(1);
  f.write(id, 1000);
  std::promise<void> goOn;
  f.workerOfObject(id).post([wait = goOn.get_future().share()](DataWorker&) { wait.wait(); });
  auto cut = f.startTruncate({{id, 10}});
  f.turn();
  f.ost().lease.begin(inAnHour());
  goOn.set_value();
  REQUIRE(f.throws(kj::mv(cut)));
  REQUIRE(f.sizeOf(id) == 1000);
}

TEST_CASE("what is destroyed is gone, and may have been so before") {
  ControlFixture f;
  std::vector<ObjectId> ids;
  for (uint64_t i = 1; i <= 10; ++i) {
    ids.push_back(objectNumber(i));
    if (i % 2 == 0) f.write(ids.back(), i * 1000);
    REQUIRE(f.sizeOf(ids.back()) == (i % 2 == 0 ? i * 1000 : kNone));
  }
  f.destroy(ids);
  for (auto& id : ids) {
    REQUIRE(f.sizeOf(id) == kNone);
    REQUIRE_FALSE(f.recordOf(id));
  }
}
