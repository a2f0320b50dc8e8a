// What a data client writes and reads, where nothing fails and where everything does.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <span>

#include "data_client_fixture.h"

namespace trainfs::client {

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

TEST_CASE("punch, sync and stat reach every object they name", "[data_client]") {
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
