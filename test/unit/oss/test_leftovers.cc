// What a killed OSS left dirty, behind real data workers.
#include <catch2/catch_test_macros.hpp>

#include "lib/eventually.h"
#include "oss/leftovers.h"
#include "store_fixture.h"

using namespace trainfs;
using namespace trainfs::oss;

namespace {

class NobodyAsks final : public SessionVerifier {
 public:
  void check(uint32_t, SessionId, uint32_t, std::function<void(Verdict)> done) override {
    done(Verdict::kInvalid);
  }
};

// A server of an OST that another one left.
class NextServer {
 public:
  explicit NextServer(const StoreFixture& last) {
    auto ost = std::make_unique<Ost>();
    ost->name = "test-OST0000";
    ost->directory = last.path();
    ost->index = std::make_unique<ObjectIndex>(last.path() + "/index", last.note());
    ost->unclean = ost->index->foundUnclean();
    osts_.push_back(std::move(ost));
    for (uint32_t i = 0; i < kWorkers; ++i)
      workers_.push_back(
          std::make_unique<WorkerThread>(WorkerConfig{.number = i, .count = kWorkers},
                                         listenOn("127.0.0.1", 0).socket, osts_, sessions_, none_));
  }
  Ost& ost() { return *osts_[0]; }
  std::span<const std::unique_ptr<WorkerThread>> workers() { return workers_; }
  bool isDirty(uint64_t number) {
    ObjectIndex::Reader reader(*ost().index);
    auto found = reader.find(objectNumber(number));
    return !found || found->record.dirty;
  }

 private:
  static constexpr uint32_t kWorkers = 2;
  std::vector<std::unique_ptr<Ost>> osts_;
  SessionTable sessions_;
  NobodyAsks none_;
  std::vector<std::unique_ptr<WorkerThread>> workers_;
};

bool soon(const std::function<bool()>& condition) {
  return test::eventually(condition, std::chrono::seconds(30));
}

constexpr uint64_t kObjects = 60;

// Every second one was synced and then changed again, so that it has a record.
void leaveDirty(StoreFixture& fixture) {
  for (uint64_t i = 1; i <= kObjects; ++i) {
    REQUIRE(fixture.write(objectNumber(i * 100), 0, Bytes(1000)) == 0);
    if (i % 2 == 0) continue;
    REQUIRE(fixture.sync(objectNumber(i * 100)) == 0);
    REQUIRE(fixture.write(objectNumber(i * 100), 10, Bytes(10)) == 0);
  }
  fixture.abandon();
}

}  // namespace

TEST_CASE("what a killed server left dirty is made clean though nobody touches it") {
  StoreFixture fixture;
  leaveDirty(fixture);
  NextServer server(fixture);
  REQUIRE(server.ost().unclean);
  Leftovers leftovers(server.ost(), server.workers());
  REQUIRE(soon([&] { return !server.ost().unclean; }));
  REQUIRE(server.ost().leftovers == 0);
  for (uint64_t i = 1; i <= kObjects; ++i) REQUIRE_FALSE(server.isDirty(i * 100));
}

TEST_CASE("an object that cannot be made clean keeps its OST from counting as clean") {
  StoreFixture fixture;
  leaveDirty(fixture);
  auto file = fixture.fileOf(objectNumber(100));
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  NextServer server(fixture);
  Leftovers leftovers(server.ost(), server.workers());
  auto othersAreClean = [&] {
    for (uint64_t i = 2; i <= kObjects; ++i)
      if (server.isDirty(i * 100)) return false;
    return true;
  };
  REQUIRE(soon([&] { return othersAreClean() && server.ost().leftovers == 1; }));
  REQUIRE(server.ost().unclean);
}

TEST_CASE("an interrupted search leaves the rest for the next server") {
  StoreFixture fixture;
  leaveDirty(fixture);
  {
    NextServer server(fixture);
    Leftovers leftovers(server.ost(), server.workers());
  }
  NextServer server(fixture);
  Leftovers leftovers(server.ost(), server.workers());
  REQUIRE(soon([&] { return !server.ost().unclean; }));
  for (uint64_t i = 1; i <= kObjects; ++i) REQUIRE_FALSE(server.isDirty(i * 100));
}
