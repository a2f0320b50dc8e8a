#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <future>
#include <numeric>

#include "fake_oss.h"
#include "fuse_client/data_client.h"
#include "lib/seed.h"

namespace trainfs::client {

using namespace std::chrono_literals;
using test::Random;

namespace {

constexpr auto kPatience = 60s;  // for what must happen; nothing waits that long in a passing run

ObjectId objectId(uint32_t stripe) {
  return {.inode = {100}, .generation = 1, .stripe = stripe};
}

ObjectExtent extentOf(uint32_t stripe, uint64_t offset, uint64_t length, uint32_t chain = 0) {
  return {.object = objectId(stripe),
          .chain = {chain},
          .objectOffsetBytes = offset,
          .lengthBytes = length};
}

std::vector<std::byte> randomBytes(Random& random, size_t bytes) {
  std::vector<std::byte> data(bytes);
  uint64_t value = random.between(0, ~uint64_t{0});
  for (size_t i = 0; i < bytes; ++i) {
    value = value * 6364136223846793005u + 1442695040888963407u;
    data[i] = static_cast<std::byte>(value >> 56);
  }
  return data;
}

ClusterMap mapOf(std::initializer_list<const FakeOss*> servers, uint64_t version = 1) {
  ClusterMap map{.version = version, .fsname = "test"};
  for (auto* server : servers) map.osts.push_back(server->address());
  return map;
}

// A data client whose calls can be waited for.
struct Client {
  explicit Client(const DataClientOptions& options = {}) : client(DataClient::create(options)) {}

  int read(std::vector<ReadPiece> pieces) {
    return wait([&](auto done) { client->read(std::move(pieces), done); });
  }
  int read(const ObjectExtent& extent, std::vector<std::byte>& data, bool mustExist = false) {
    data.assign(extent.lengthBytes, std::byte{0xee});
    return read({{extent, data, mustExist}});
  }
  int write(const ObjectExtent& extent, const std::vector<std::byte>& data) {
    return wait([&](auto done) { client->write({{extent, data}}, done); });
  }
  Result<std::vector<ObjectFigures>> stat(std::vector<ObjectRef> objects) {
    std::promise<Result<std::vector<ObjectFigures>>> answer;
    client->stat(std::move(objects), [&](auto result) { answer.set_value(std::move(result)); });
    return answer.get_future().get();
  }
  template <typename Call>
  int wait(Call call) {
    std::promise<int> answer;
    auto future = answer.get_future();
    call([&](auto status) { answer.set_value(status.errnoOrZero()); });
    if (future.wait_for(kPatience) != std::future_status::ready) {
      FAIL("no completion");  // answer is still referred to: end here
      std::abort();
    }
    return future.get();
  }

  std::unique_ptr<DataClient> client;
};

template <typename Condition>
bool eventually(Condition condition) {
  auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

// The first request (or the first `count`) of an operation has the fault, the others none.
FakeOss::Choose faultOnce(BulkOp op, Fault fault, int count = 1) {
  return [=, left = std::make_shared<int>(count)](const BulkHeader& header) {
    return header.op == op && (*left)-- > 0 ? fault : Fault::kNone;
  };
}

}  // namespace

TEST_CASE("what is written is read back", "[data_client]") {
  Random random(1);
  FakeOss oss(0, 1);
  Client client;
  client.client->setMap(mapOf({&oss}));
  client.client->setSession({1}, 1);
  auto data = randomBytes(random, 300'000);
  REQUIRE(client.write(extentOf(1, 1000, data.size()), data) == 0);
  std::vector<std::byte> back;
  REQUIRE(client.read(extentOf(1, 1000, data.size()), back) == 0);
  CHECK(back == data);
  CHECK(oss.requests() == 2);
  CHECK(oss.hellos() <= 2);
}

TEST_CASE("big and scattered pieces travel in several frames and arrive where they belong",
          "[data_client]") {
  Random random(2);
  FakeOss one(0, 3), two(1, 2);
  Client client({.workers = 2, .lanesPerWorker = 2});
  client.client->setMap(mapOf({&one, &two}));
  client.client->setSession({1}, 1);
  auto data = randomBytes(random, 20 * kMiB + 4321);
  std::vector<WritePiece> writes;
  std::vector<std::byte> back(data.size());
  std::vector<ReadPiece> reads;
  for (size_t at = 0; at < data.size();) {
    // Pieces from bytes to more than a frame, over many objects of two OSTs.
    size_t length = std::min<size_t>(
        random.chance(10) ? random.between(1, 5 * kMiB) : random.between(1, 20'000),
        data.size() - at);
    uint32_t stripe = random.between(0, 200);
    auto extent = extentOf(stripe, at, length, stripe % 2);
    writes.push_back({extent, std::span(data).subspan(at, length)});
    reads.push_back({extent, std::span(back).subspan(at, length)});
    at += length;
  }
  REQUIRE(client.wait([&](auto done) { client.client->write(writes, done); }) == 0);
  REQUIRE(client.read(reads) == 0);
  CHECK(back == data);
}

TEST_CASE("what is not there reads as zeros, unless it must exist", "[data_client]") {
  Random random(3);
  FakeOss oss(0, 1);
  Client client;
  client.client->setMap(mapOf({&oss}));
  client.client->setSession({1}, 1);
  std::vector<std::byte> back;
  REQUIRE(client.read(extentOf(9, 0, 100'000), back) == 0);
  CHECK(back == std::vector<std::byte>(100'000));
  CHECK(client.read(extentOf(9, 0, 100'000), back, true) == EIO);
  auto data = randomBytes(random, 70'000);
  REQUIRE(client.write(extentOf(9, 0, data.size()), data) == 0);
  REQUIRE(client.read(extentOf(9, 0, 100'000), back, true) == 0);
  auto expected = data;
  expected.resize(100'000);
  CHECK(back == expected);
  REQUIRE(client.read(extentOf(9, 90'000, 10), back, true) == 0);
  CHECK(back == std::vector<std::byte>(10));
}

TEST_CASE("punch, truncate, sync and stat reach every object they name", "[data_client]") {
  Random random(4);
  FakeOss oss(0, 3);
  Client client;
  client.client->setMap(mapOf({&oss}));
  client.client->setSession({1}, 1);
  std::vector<ObjectRef> refs;
  for (uint32_t stripe = 0; stripe < 200; ++stripe) {
    auto data = randomBytes(random, stripe + 1);
    REQUIRE(client.write(extentOf(stripe, 0, data.size()), data) == 0);
    refs.push_back({objectId(stripe), {0}});
  }
  refs.push_back({objectId(999), {0}});
  auto figures = client.stat(refs);
  REQUIRE(figures.ok());
  REQUIRE(figures->size() == 201);
  for (uint32_t stripe = 0; stripe < 200; ++stripe) {
    CHECK((*figures)[stripe].exists);
    CHECK((*figures)[stripe].sizeBytes == stripe + 1);
    CHECK((*figures)[stripe].usedBytes == 4096);
  }
  CHECK_FALSE((*figures)[200].exists);
  CHECK(client.wait([&](auto done) { client.client->sync(refs, done); }) == 0);
  CHECK(client.wait([&](auto done) {
    client.client->truncate({{{objectId(5), {0}}, 3}, {{objectId(7), {0}}, 500}}, done);
  }) == 0);
  CHECK(oss.object(objectId(5))->size() == 3);
  CHECK(oss.object(objectId(7))->size() == 500);
  CHECK(client.wait(
            [&](auto done) { client.client->punch({extentOf(199, 10, 20 * kGiB)}, done); }) == 0);
  auto punched = *oss.object(objectId(199));
  CHECK(std::all_of(punched.begin() + 10, punched.end(),
                    [](std::byte b) { return b == std::byte{0}; }));
}

TEST_CASE("what makes no sense is refused, and nothing to do is done", "[data_client]") {
  Client client;
  CHECK(client.read({}) == 0);
  CHECK(client.wait([&](auto done) { client.client->sync({}, done); }) == 0);
  std::vector<std::byte> memory(10);
  CHECK(client.read({{extentOf(1, 0, 11), memory}}) == EINVAL);
  CHECK(client.read({{extentOf(1, kFileBytesMax - 5, 10), memory}}) == EINVAL);
  CHECK(client.wait([&](auto done) {
    client.client->punch({extentOf(1, 0, kFileBytesMax)}, done);
  }) == EFBIG);
  CHECK(client.wait([&](auto done) {
    client.client->truncate({{{objectId(1), {0}}, kFileBytesMax + 1}}, done);
  }) == EINVAL);
}

TEST_CASE("every fault of a server is survived", "[data_client]") {
  for (int i = 1; i < kFaults; ++i) {
    auto fault = static_cast<Fault>(i);
    INFO("fault " << i);
    Random random(5);
    FakeOss oss(0, 1);
    Client client;
    client.client->setMap(mapOf({&oss}));
    client.client->setSession({1}, 1);
    auto data = randomBytes(random, 3 * kMiB);
    auto extent = extentOf(1, 777, data.size());
    oss.chooseFaults(faultOnce(BulkOp::kWrite, fault));
    REQUIRE(client.write(extent, data) == 0);
    std::vector<std::byte> back;
    if (fault == Fault::kBadSum) continue;  // of writes only
    oss.chooseFaults(faultOnce(BulkOp::kRead, fault));
    REQUIRE(client.read(extent, back) == 0);
    REQUIRE(back == data);
    oss.chooseFaults(faultOnce(BulkOp::kSync, fault));
    REQUIRE(client.wait([&](auto done) { client.client->sync({{objectId(1), {0}}}, done); }) == 0);
  }
}

TEST_CASE("data that never matches its sums is an error, not data", "[data_client]") {
  Random random(6);
  FakeOss oss(0, 1);
  Client client;
  client.client->setMap(mapOf({&oss}));
  client.client->setSession({1}, 1);
  auto data = randomBytes(random, 200'000);
  REQUIRE(client.write(extentOf(1, 0, data.size()), data) == 0);
  oss.chooseFaults(faultOnce(BulkOp::kRead, Fault::kSpoiltData, 1000));
  std::vector<std::byte> back;
  auto before = oss.requests();
  CHECK(client.read(extentOf(1, 0, data.size()), back) == EIO);
  CHECK(oss.requests() - before == 2);
  oss.chooseFaults(faultOnce(BulkOp::kWrite, Fault::kBadSum, 1000));
  CHECK(client.write(extentOf(1, 0, data.size()), data) == EIO);
}

TEST_CASE("requests wait for a map, a session, and an OST that is away", "[data_client]") {
  Random random(7);
  FakeOss oss(3, 2);
  Client client;
  auto data = randomBytes(random, 50'000);
  auto extent = extentOf(1, 0, data.size(), 3);
  std::promise<int> written;
  client.client->write({{extent, data}},
                       [&](auto status) { written.set_value(status.errnoOrZero()); });
  client.client->setSession({1}, 1);
  client.client->setMap(mapOf({}, 1));
  client.client->setMap(mapOf({&oss}, 2));
  auto answer = written.get_future();
  REQUIRE(answer.wait_for(kPatience) == std::future_status::ready);
  CHECK(answer.get() == 0);

  // Away, and back elsewhere, with another number of ports.
  oss.stop();
  std::vector<std::byte> back(data.size());
  std::promise<int> read;
  client.client->read({{extent, back}},
                      [&](auto status) { read.set_value(status.errnoOrZero()); });
  oss.start(5);
  client.client->setMap(mapOf({&oss}, 3));
  answer = read.get_future();
  REQUIRE(answer.wait_for(kPatience) == std::future_status::ready);
  CHECK(answer.get() == 0);
  CHECK(back == data);

  // Away, and back on other ports.
  oss.stop();
  oss.start(5);
  client.client->setMap(mapOf({&oss}, 4));
  REQUIRE(client.read(extent, back) == 0);
  CHECK(back == data);

  // A name that must be looked up.
  oss.stop();
  oss.start(5);
  auto map = mapOf({&oss}, 5);
  map.osts[0].host = "localhost";
  client.client->setMap(map);
  REQUIRE(client.read(extent, back) == 0);
  CHECK(back == data);
}

TEST_CASE("a session that is over is reported once, and its requests go on under the next",
          "[data_client]") {
  Random random(8);
  FakeOss oss(0, 2), other(1, 1);
  Client client;
  std::atomic<int> reports{0};
  client.client->onStaleSession([&] { ++reports; });
  client.client->setMap(mapOf({&oss, &other}));
  client.client->setSession({1}, 1);
  auto data = randomBytes(random, 50'000);
  REQUIRE(client.write(extentOf(1, 0, data.size()), data) == 0);
  oss.setSession(1, 2);
  other.setSession(1, 2);
  std::vector<std::promise<int>> written(8);
  for (uint32_t i = 0; i < written.size(); ++i) {
    client.client->write(
        {{extentOf(i, 0, data.size(), i % 2), data}},
        [&written, i](auto status) { written[i].set_value(status.errnoOrZero()); });
  }
  REQUIRE(eventually([&] { return reports == 1; }));
  client.client->setSession({1}, 2);
  for (auto& promise : written) {
    auto answer = promise.get_future();
    REQUIRE(answer.wait_for(kPatience) == std::future_status::ready);
    CHECK(answer.get() == 0);
  }
  CHECK(reports == 1);
}

TEST_CASE("a newer chain version is taken from a newer map", "[data_client]") {
  Random random(9);
  FakeOss oss(0, 1);
  Client client;
  client.client->setMap(mapOf({&oss}));
  client.client->setSession({1}, 1);
  auto data = randomBytes(random, 5000);
  REQUIRE(client.write(extentOf(1, 0, data.size()), data) == 0);
  oss.setChainVersion(2);
  std::promise<int> written;
  auto requests = oss.requests();
  client.client->write({{extentOf(1, 0, data.size()), data}},
                       [&](auto status) { written.set_value(status.errnoOrZero()); });
  REQUIRE(eventually([&] { return oss.requests() > requests + 1; }));  // it asks again by itself
  client.client->setMap(mapOf({&oss}, 2));
  auto answer = written.get_future();
  REQUIRE(answer.wait_for(kPatience) == std::future_status::ready);
  CHECK(answer.get() == 0);
}

TEST_CASE("a soft mount gives up in time, a hard one does not", "[data_client]") {
  Random random(10);
  FakeOss oss(0, 1);
  auto map = mapOf({&oss});
  Client client({.soft = true, .softTimeout = 200ms});
  client.client->setMap(map);
  client.client->setSession({1}, 1);
  std::vector<std::byte> back;
  REQUIRE(client.read(extentOf(1, 0, 100), back) == 0);
  // The server is there, but does not answer in time.
  oss.chooseFaults([](const BulkHeader&) { return Fault::kRetry; });
  CHECK(client.read(extentOf(1, 0, 100), back) == EIO);
  oss.chooseFaults([](const BulkHeader&) { return Fault::kCloseBefore; });
  CHECK(client.read(extentOf(1, 0, 100), back) == EIO);
  oss.stop();
  CHECK(client.read(extentOf(1, 0, 100), back) == EIO);
  CHECK(client.read(extentOf(1, 0, 100, 77), back) == EIO);  // an OST that nobody knows
  oss.start(1);
  oss.chooseFaults({});
  client.client->setMap(mapOf({&oss}, 2));
  CHECK(eventually([&] { return client.read(extentOf(1, 0, 100), back) == 0; }));
}

TEST_CASE("what is unanswered at the end completes with ESHUTDOWN", "[data_client]") {
  FakeOss oss(0, 1);
  std::vector<std::byte> back(100);
  std::atomic<int> shutDown{0}, other{0};
  auto count = [&](auto status) { ++(status.errnoOrZero() == ESHUTDOWN ? shutDown : other); };
  SECTION("nothing is known yet") {
    auto client = DataClient::create({});
    for (int i = 0; i < 10; ++i) client->read({{extentOf(i, 0, 100), back}}, count);
  }
  SECTION("the server is away") {
    auto client = DataClient::create({});
    client->setMap(mapOf({&oss}));
    client->setSession({1}, 1);
    oss.stop();
    for (int i = 0; i < 10; ++i) client->read({{extentOf(i, 0, 100), back}}, count);
  }
  SECTION("the server only ever says later") {
    oss.chooseFaults([](const BulkHeader&) { return Fault::kRetry; });
    auto client = DataClient::create({});
    client->setMap(mapOf({&oss}));
    client->setSession({1}, 1);
    for (int i = 0; i < 10; ++i) client->read({{extentOf(i, 0, 100), back}}, count);
    REQUIRE(eventually([&] { return oss.requests() > 20; }));
  }
  CHECK(shutDown == 10);
  CHECK(other == 0);
}

// ---- Everything at once ----

namespace {

// One object and what must be in it; only one operation at a time, as the file system has it for a
// range.
struct Model {
  ObjectExtent whole;
  std::vector<std::byte> bytes;
  std::vector<std::byte> buffer;
  std::atomic<bool> busy{false};
  std::atomic<int> completions{0};
  std::atomic<int> error{0};
  bool reading = false;
  uint64_t offset = 0;
};

// Starts a random operation on the object; false when the result of the last one is wrong.
bool step(DataClient& client, Model& model, Random& random) {
  if (model.reading) {
    std::vector<std::byte> expected(model.buffer.size());
    size_t there =
        std::min(model.buffer.size(),
                 model.bytes.size() - std::min<size_t>(model.bytes.size(), model.offset));
    if (there > 0) std::memcpy(expected.data(), model.bytes.data() + model.offset, there);
    if (expected != model.buffer) return false;
  }
  if (model.completions != 1 || model.error != 0) return false;
  size_t length = random.chance(20) ? random.between(1, 3 * kMiB) : random.between(1, 100'000);
  model.offset = random.chance(50) ? random.between(0, 32) * kBlockBytes : random.between(0, kMiB);
  model.reading = random.chance(50);
  model.completions = 0;
  model.busy = true;
  auto done = [&model](auto status) {
    model.error = status.errnoOrZero();
    ++model.completions;
    model.busy = false;
  };
  ObjectExtent extent = model.whole;
  extent.objectOffsetBytes = model.offset;
  extent.lengthBytes = length;
  if (model.reading) {
    model.buffer.assign(length, std::byte{0xcc});
    client.read({{extent, model.buffer}}, done);
  } else {
    model.buffer = randomBytes(random, length);
    if (model.bytes.size() < model.offset + length) model.bytes.resize(model.offset + length);
    std::memcpy(model.bytes.data() + model.offset, model.buffer.data(), length);
    client.write({{extent, model.buffer}}, done);
  }
  return true;
}

}  // namespace

TEST_CASE("random operations come out right whatever the servers do", "[data_client]") {
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  Random random(seed);
  std::set<uint64_t> spoilt;  // a read whose data is spoilt twice is rightly an error
  std::mutex mutex;
  Random faultRandom(seed + 1);
  FakeOss one(0, 2), two(1, 3);
  auto choose = [&](const BulkHeader& header) {
    std::lock_guard lock(mutex);
    if (!faultRandom.chance(15)) return Fault::kNone;
    auto fault = static_cast<Fault>(faultRandom.between(1, kFaults - 1));
    bool limited = fault == Fault::kSpoiltData || fault == Fault::kBadSum;
    if (fault == Fault::kBadSum && header.op == BulkOp::kRead) return Fault::kNone;
    if (limited && !spoilt.insert(header.requestId).second) return Fault::kNone;
    return fault;
  };
  one.chooseFaults(choose);
  two.chooseFaults(choose);
  DataClientOptions options{.workers = static_cast<uint32_t>(random.between(1, 3)),
                            .lanesPerWorker = static_cast<uint32_t>(random.between(1, 2)),
                            .inFlightPerConnection = static_cast<uint32_t>(random.between(1, 8))};
  auto client = DataClient::create(options);
  std::atomic<uint32_t> epoch{1};
  client->setMap(mapOf({&one, &two}));
  client->setSession({1}, epoch);

  std::vector<std::unique_ptr<Model>> models;
  for (uint32_t i = 0; i < 12; ++i) {
    auto& model = models.emplace_back(std::make_unique<Model>());
    model->whole = extentOf(i, 0, 0, i % 2);
    model->completions = 1;
  }
  uint64_t version = 1;
  for (int round = 0; round < 600; ++round) {
    if (round % 100 == 50) {  // a server restarts, mostly with another number of ports
      FakeOss& server = random.chance(50) ? one : two;
      server.stop();
      server.start(random.between(1, 3));
      client->setMap(mapOf({&one, &two}, ++version));
    }
    if (round % 150 == 75) {  // the session is evicted and made anew
      ++epoch;
      one.setSession(1, epoch);
      two.setSession(1, epoch);
      client->setSession({1}, epoch);
    }
    Model& model = *models[random.between(0, models.size() - 1)];
    REQUIRE(eventually([&] { return !model.busy; }));
    REQUIRE(step(*client, model, random));
  }
  for (auto& model : models) {
    REQUIRE(eventually([&] { return !model->busy; }));
    REQUIRE(step(*client, *model, random));
    REQUIRE(eventually([&] { return !model->busy; }));
  }
  client.reset();
  for (auto& model : models) CHECK(model->completions == 1);
}

}  // namespace trainfs::client
