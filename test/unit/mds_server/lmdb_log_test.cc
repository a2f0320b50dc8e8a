#include "mds/lmdb_log.h"

#include <kj/async-io.h>
#include <kj/debug.h>
#include <sys/stat.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <condition_variable>
#include <mutex>

#include "lib/mem_store.h"
#include "lib/temp_dir.h"
#include "mds/lmdb_store.h"
#include "mds/namespace.h"
#include "mds/state_machine.h"

using namespace trainfs;
using namespace trainfs::mds;

namespace {

Command makeDir(const std::string& name, uint64_t inode) {
  return {.now = {5, 0},
          .op = CreateOp{
              .parent = kRootInode, .name = name, .mode = S_IFDIR | 0755, .newInode = {inode}}};
}

void formatStore(Store& store) {
  auto txn = store.begin();
  format(*txn, "trainfs", 0, {1, 0});
  txn->commit();
}

// Its writer can be stopped at the door; writes of keys with "poison" in them fail.
class GatedStore final : public Store {
 public:
  explicit GatedStore(Store& store) : store_(store) {}
  std::atomic<Room> room = Room::kPlenty;
  Room makeRoom() override { return room; }
  std::unique_ptr<View> snapshot() override { return store_.snapshot(); }
  std::unique_ptr<Txn> begin() override {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    return std::make_unique<PoisonTxn>(store_.begin());
  }
  void close() {
    std::unique_lock lock(mutex_);
    open_ = false;
  }
  void waitForWriter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ > 0; });
  }
  void open() {
    std::unique_lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  class PoisonTxn final : public Txn {
   public:
    explicit PoisonTxn(std::unique_ptr<Txn> txn) : txn_(std::move(txn)) {}
    std::optional<std::string_view> get(std::string_view key) const override {
      return txn_->get(key);
    }
    void scan(std::string_view from, std::string_view prefix,
              const std::function<bool(std::string_view, std::string_view)>& visit) const override {
      txn_->scan(from, prefix, visit);
    }
    void put(std::string_view key, std::string_view value) override {
      KJ_REQUIRE(key.find("poison") == key.npos, "poisoned");
      txn_->put(key, value);
    }
    void erase(std::string_view key) override { txn_->erase(key); }
    void commit() override { txn_->commit(); }

   private:
    std::unique_ptr<Txn> txn_;
  };

  Store& store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int arrived_ = 0;
};

// A log over a store whose door is closed: what is appended waits.
struct GatedLog {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  MemStore memory;
  GatedStore store{memory};
  LmdbLog log;
  GatedLog() : log(closed(memory, store)) {}

 private:
  static GatedStore& closed(MemStore& memory, GatedStore& store) {
    formatStore(memory);
    store.close();
    return store;
  }
};

}  // namespace

TEST_CASE_METHOD(GatedLog, "commands that wait together become one transaction") {
  auto first = log.append(makeDir("first", 10));
  store.waitForWriter();
  std::vector<kj::Promise<Outcome>> rest;
  for (uint64_t i = 0; i < 500; ++i)
    rest.push_back(log.append(makeDir("d" + std::to_string(i), 100 + i)));
  store.open();
  CHECK(first.wait(io.waitScope).inode == InodeId{10});
  for (uint64_t i = 0; i < 500; ++i) CHECK(rest[i].wait(io.waitScope).inode == InodeId{100 + i});
  CHECK(log.commits() == 2);
}

TEST_CASE_METHOD(
    GatedLog,
    "commands beyond what may wait are refused, by number of bytes too, and none is lost") {
  auto value = std::string(64 * kKiB, 'v');
  size_t refused = 0, answered = 0;
  std::vector<kj::Promise<void>> all;
  auto append = [&](Operation op) {
    size_t number = all.size() - refused;
    all.push_back(log.append({.now = {5, 0}, .op = std::move(op)})
                      .then(
                          [&, number](Outcome outcome) {
                            CHECK(outcome.error == 0);
                            CHECK(number == answered++);
                          },
                          [&](kj::Exception&& e) {
                            CHECK(e.getType() == kj::Exception::Type::OVERLOADED);
                            ++refused;
                          })
                      .eagerlyEvaluate(nullptr));
    io.waitScope.poll();
  };
  size_t fit = kLogWaitingBytesMax / value.size();
  for (size_t i = 0; refused == 0 && i <= fit; ++i) append(SetXattrOp{kRootInode, "user.a", value});
  CHECK(refused == 1);
  CHECK(all.size() > fit / 2);
  append(SetXattrOp{kRootInode, "user.a", value});
  CHECK(refused == 2);
  store.open();
  for (auto& one : all) one.wait(io.waitScope);
  CHECK(answered == all.size() - 2);
  append(SetXattrOp{kRootInode, "user.a", value});
  all.back().wait(io.waitScope);
  CHECK(refused == 2);
}

TEST_CASE_METHOD(GatedLog,
                 "from the first batch on, a store that writes into its reserve gets small ones") {
  auto first = log.append(makeDir("first", 10));
  store.waitForWriter();
  constexpr size_t kCommands = 4 * kLogReserveBatchMax;
  std::vector<kj::Promise<Outcome>> rest;
  for (size_t i = 0; i < kCommands; ++i)
    rest.push_back(log.append({.now = {6, 0}, .op = RmdirOp{kRootInode, std::to_string(i), {}}}));
  store.room = Room::kReserve;
  store.open();
  first.wait(io.waitScope);
  for (auto& one : rest) CHECK(one.wait(io.waitScope).error == ENOENT);
  CHECK(log.commits() == 1 + 4);
}

TEST_CASE_METHOD(GatedLog,
                 "a command that cannot be applied does not hurt the others of its batch") {
  std::vector<kj::Promise<Outcome>> results;
  for (auto name : {"a", "poison1", "b", "poison2", "c"})
    results.push_back(log.append(makeDir(name, 10 + results.size())));
  store.waitForWriter();
  store.open();
  for (size_t good : {0, 2, 4}) CHECK(results[good].wait(io.waitScope).error == 0);
  for (size_t bad : {1, 3})
    CHECK(kj::runCatchingExceptions([&] { results[bad].wait(io.waitScope); }) != nullptr);
  auto view = memory.snapshot();
  CHECK(lookup(*view, kRootInode, "c").ok());
  CHECK(!lookup(*view, kRootInode, "poison1").ok());
}

TEST_CASE("what was appended is in the store after the log has gone") {
  auto io = kj::setupAsyncIo();
  trainfs::test::TempDir dir;
  {
    auto store = LmdbStore::open(dir.path(), {.mapBytes = 64 * kMiB, .create = true});
    formatStore(*store);
    LmdbLog log(*store);
    for (uint64_t i = 0; i < 100; ++i)
      log.append(makeDir("d" + std::to_string(i), 100 + i)).detach([](kj::Exception&&) {});
  }
  auto store = LmdbStore::open(dir.path(), {.mapBytes = 64 * kMiB});
  CHECK(readdir(*store->snapshot(), kRootInode, 0, 1000)->entries.size() == 100);
}
