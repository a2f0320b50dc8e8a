// The data client against the data workers of the real OSS, in one process.
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdio>
#include <future>
#include <semaphore>

#include "fuse_client/data_client.h"
#include "lib/seed.h"
#include "lib/temp_dir.h"
#include "oss/data_worker.h"

namespace trainfs::client {

using namespace std::chrono_literals;

namespace {

// Two OSTs in one OSS process, so on the same ports.
class RealOss {
 public:
  explicit RealOss(uint32_t workers) : workerCount_(workers) {
    for (uint32_t index = 0; index < 2; ++index) {
      auto ost = std::make_unique<oss::Ost>();
      ost->target.index = index;
      ost->name = "test-OST000" + std::to_string(index);
      ost->directory = directories_[index].path();
      ost->index =
          std::make_unique<oss::ObjectIndex>(ost->directory + "/index", ost->directory + "/note");
      ost->chainVersion = 1;
      ost->lease.begin(std::chrono::steady_clock::now() + 1h);
      osts_.push_back(std::move(ost));
    }
    start();
  }
  void start() {
    ports_.clear();
    for (uint32_t i = 0; i < workerCount_; ++i) {
      auto listener = oss::listenOn("127.0.0.1", 0);
      ports_.push_back(listener.port);
      workers_.push_back(
          std::make_unique<oss::WorkerThread>(oss::WorkerConfig{.number = i, .count = workerCount_},
                                              listener.socket, osts_, sessions_, verifier_));
    }
  }
  void stop() { workers_.clear(); }
  ClusterMap map(uint64_t version) const {
    ClusterMap map{.version = version, .fsname = "test"};
    for (uint32_t i = 0; i < 2; ++i)
      map.osts.push_back({.index = i,
                          .host = "127.0.0.1",
                          .ports = ports_,
                          .chainVersion = osts_[i]->chainVersion,
                          .active = true});
    return map;
  }

 private:
  struct YesVerifier final : oss::SessionVerifier {
    void check(uint32_t, SessionId, uint32_t, std::function<void(oss::Verdict)> done) override {
      done(oss::Verdict::kValid);
    }
  };
  const uint32_t workerCount_;
  test::TempDir directories_[2];
  std::vector<std::unique_ptr<oss::Ost>> osts_;
  oss::SessionTable sessions_;
  YesVerifier verifier_;
  std::vector<uint16_t> ports_;
  std::vector<std::unique_ptr<oss::WorkerThread>> workers_;
};

template <typename Call>
int wait(Call call) {
  std::promise<int> answer;
  call([&](auto status) { answer.set_value(status.errnoOrZero()); });
  return answer.get_future().get();
}

ObjectExtent extentOf(uint32_t stripe, uint64_t offset, uint64_t length) {
  return {.object = {.inode = {77}, .generation = 1, .stripe = stripe},
          .chain = {stripe % 2},
          .objectOffsetBytes = offset,
          .lengthBytes = length};
}

}  // namespace

TEST_CASE("the real OSS gives back what was written, across a restart", "[data_client]") {
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  test::Random random(seed);
  RealOss oss(2);
  auto client = DataClient::create({.workers = 2, .lanesPerWorker = 2});
  client->setMap(oss.map(1));
  client->setSession({5}, 1);
  std::vector<std::byte> data(12 * kMiB + 321), back(data.size());
  for (auto& byte : data) byte = static_cast<std::byte>(random.between(0, 255));
  std::vector<WritePiece> writes;
  std::vector<ReadPiece> reads;
  std::vector<ObjectRef> refs;
  for (size_t at = 0; at < data.size();) {
    size_t length = std::min<size_t>(
        random.chance(10) ? random.between(1, 3 * kMiB) : random.between(1, 50'000),
        data.size() - at);
    auto extent = extentOf(random.between(0, 40), at, length);
    writes.push_back({extent, std::span(data).subspan(at, length)});
    reads.push_back({extent, std::span(back).subspan(at, length), true});
    refs.push_back({extent.object, extent.chain});
    at += length;
  }
  REQUIRE(wait([&](auto done) { client->write(writes, done); }) == 0);
  REQUIRE(wait([&](auto done) { client->sync(refs, done); }) == 0);
  REQUIRE(wait([&](auto done) { client->read(reads, done); }) == 0);
  CHECK((back == data));

  back.assign(back.size(), std::byte{0});
  oss.stop();
  std::promise<int> answer;
  client->read(reads, [&](auto status) { answer.set_value(status.errnoOrZero()); });
  oss.start();
  client->setMap(oss.map(2));
  REQUIRE(answer.get_future().get() == 0);
  CHECK((back == data));

  // A hole reads as zeros, and so does what was punched; a missing object as its caller wants it.
  std::vector<std::byte> hole(100'000, std::byte{1});
  auto extent = extentOf(1000, 0, hole.size());
  CHECK(wait([&](auto done) { client->read({{extent, hole, true}}, done); }) == EIO);
  CHECK(wait([&](auto done) { client->read({{extent, hole}}, done); }) == 0);
  CHECK((hole == std::vector<std::byte>(hole.size())));
  CHECK(wait([&](auto done) { client->punch({writes[0].extent}, done); }) == 0);
  CHECK(wait([&](auto done) { client->read({reads[0]}, done); }) == 0);
  CHECK(std::all_of(reads[0].data.begin(), reads[0].data.end(),
                    [](std::byte byte) { return byte == std::byte{0}; }));

  std::promise<Result<std::vector<ObjectFigures>>> figures;
  client->stat({refs[0], {extent.object, extent.chain}},
               [&](auto result) { figures.set_value(std::move(result)); });
  auto found = figures.get_future().get();
  REQUIRE(found.ok());
  CHECK((*found)[0].exists);
  uint64_t end = 0;  // each write ends behind those before
  for (auto& write : writes)
    if (write.extent.object == refs[0].object)
      end = write.extent.objectOffsetBytes + write.extent.lengthBytes;
  CHECK((*found)[0].sizeBytes == end);
  CHECK_FALSE((*found)[1].exists);
}

// Not a test: shows MB/s and the mean time of a request. Run alone, with "[.bench]".
TEST_CASE("throughput of one client and one OSS", "[.bench]") {
  RealOss oss(1);
  auto client = DataClient::create({});
  client->setMap(oss.map(1));
  client->setSession({5}, 1);
  constexpr uint64_t kObjectBytes = 256 * kMiB;
  std::vector<std::byte> memory(16 * kMiB, std::byte{7});
  auto run = [&](const char* what, bool writing, size_t bytes, int depth, int count) {
    std::counting_semaphore<64> free(depth);
    std::atomic<int> failed{0};
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) {
      free.acquire();
      auto extent = extentOf(0, i * bytes % kObjectBytes, bytes);
      auto done = [&](auto status) {
        failed += !status.ok();
        free.release();
      };
      auto slot = std::span(memory).subspan(i % depth * bytes, bytes);
      if (writing) {
        client->write({{extent, slot}}, done);
      } else {
        client->read({{extent, slot, true}}, done);
      }
    }
    for (int i = 0; i < depth; ++i) free.acquire();
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("%-10s %8zu bytes, depth %2d: %7.0f MB/s, %6.1f us each\n", what, bytes, depth,
                bytes * count / took.count() / 1e6, took.count() / count * 1e6);
    CHECK(failed == 0);
  };
  run("write", true, kMiB, 8, 256);
  for (int depth : {1, 2, 8, 16}) run("read", false, kMiB, depth, 2000);
  for (int depth : {1, 8}) run("read", false, 128 * kKiB, depth, 8000);
  for (int depth : {1, 8}) run("read", false, 4 * kKiB, depth, 20000);
  for (int depth : {1, 8}) run("rewrite", true, kMiB, depth, 1000);
}

}  // namespace trainfs::client
