// A store on a directory of its own, driven from the test's thread.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "lib/seed.h"
#include "lib/temp_dir.h"
#include "oss/object_store.h"
#include "trainfs/bulk.h"
#include "trainfs/object_id.h"

namespace trainfs::oss {

using Bytes = std::vector<std::byte>;

inline Bytes randomBytes(std::mt19937_64& random, size_t count) {
  Bytes bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

inline std::vector<uint64_t> sumsOf(uint64_t offsetBytes, const Bytes& data) {
  std::vector<uint64_t> sums(blockPieces(offsetBytes, data.size()));
  sumPieces(offsetBytes, data, sums.data());
  return sums;
}

inline ObjectId objectNumber(uint64_t number) {
  return {InodeId{number}, 1, 0, 0};
}

class StoreFixture {
 public:
  explicit StoreFixture(const ObjectStoreLimits& limits = {}) : limits_(limits) {
    lease_.begin(Lease::Instant::max());
    open();
  }

  void open() {
    index_ = std::make_unique<ObjectIndex>(directory_->path() + "/index", note(), boot_);
    store_.emplace(reactor_, *index_, lease_, directory_->path(), "test-OST0000", limits_);
  }
  // Leaves everything as it is, as a killed process does (the page cache survives it).
  void abandon() {
    store_.reset();
    index_.reset();
  }
  // With another disk, perhaps.
  void reopen(std::unique_ptr<test::TempDir> disk = nullptr) {
    abandon();
    if (disk) directory_ = std::move(disk);
    open();
  }
  // As after a start of the machine, for what depends on its boot id.
  void reboot(std::unique_ptr<test::TempDir> disk = nullptr) {
    ++boot_;
    reopen(std::move(disk));
  }

  // `meanwhile`: to be done when the task waits for the first time.
  template <typename T>
  T wait(Task<T> task, const std::function<void()>& meanwhile = {}) {
    std::optional<T> result;
    spawn(keep(std::move(task), result));
    if (meanwhile) meanwhile();
    reactor_.runUntil([&] { return result.has_value(); });
    return std::move(*result);
  }

  int write(ObjectId id, uint64_t offset, const Bytes& data) {
    auto sums = sumsOf(offset, data);
    return wait(store_->write(id, offset, data, sums.data(), registration())).errnoOrZero();
  }
  ObjectStore::Existed truncate(ObjectId id, uint64_t sizeBytes) {
    return wait(store_->truncate(id, sizeBytes, registration()));
  }
  ObjectStore::Existed punch(ObjectId id, FileRange range) {
    return wait(store_->punch(id, range, registration()));
  }
  struct ReadBack {
    int error = 0;
    bool missing = false, sumsRight = false;
    Bytes data;
  };
  ReadBack read(ObjectId id, uint64_t offset, size_t length, bool verify = false) {
    Bytes room(ObjectStore::roomFor({offset, length}));
    auto slice = wait(store_->read(id, {offset, length}, room, verify));
    if (!slice) return {.error = slice.error().code()};
    ReadBack back{.missing = slice->missing, .data{slice->data.begin(), slice->data.end()}};
    back.sumsRight = slice->sums == sumsOf(offset, back.data);
    return back;
  }
  int sync(ObjectId id) { return wait(store_->sync(id)).errnoOrZero(); }

  // The file of the only object there is.
  std::string onlyFile() const {
    std::filesystem::create_directory(directory_->path() + "/objects");
    for (auto& entry :
         std::filesystem::recursive_directory_iterator(directory_->path() + "/objects"))
      if (entry.is_regular_file()) return entry.path().string();
    return "";
  }

  std::string fileOf(ObjectId id) const {
    for (auto& entry :
         std::filesystem::recursive_directory_iterator(directory_->path() + "/objects"))
      if (entry.path().filename() == objectIdHex(id)) return entry.path().string();
    return "";
  }

  ObjectStore& store() { return *store_; }
  ObjectIndex& index() { return *index_; }
  Reactor& reactor() { return reactor_; }
  Lease& lease() { return lease_; }
  uint32_t registration() const { return lease_.registration(); }
  const std::string& path() const { return directory_->path(); }
  std::string note() const { return memory_ / "note"; }

 private:
  template <typename T>
  static Task<> keep(Task<T> task, std::optional<T>& result) {
    result.emplace(co_await std::move(task));
  }

  ObjectStoreLimits limits_;
  uint64_t boot_ = 1;
  Lease lease_;
  test::TempDir memory_;  // what /run is
  std::unique_ptr<test::TempDir> directory_ = std::make_unique<test::TempDir>();
  Reactor reactor_;
  std::unique_ptr<ObjectIndex> index_;
  std::optional<ObjectStore> store_;
};

inline void flipByte(const std::string& path, off_t offset) {
  int fd = open(path.c_str(), O_RDWR);
  REQUIRE(fd >= 0);
  char byte;
  REQUIRE(pread(fd, &byte, 1, offset) == 1);
  byte ^= 1;
  REQUIRE(pwrite(fd, &byte, 1, offset) == 1);
  close(fd);
}

inline ObjectRecord recordOf(StoreFixture& fixture, ObjectId id) {
  ObjectIndex::Reader reader(fixture.index());
  auto found = reader.find(id);
  REQUIRE(found);
  return found->record;
}

}  // namespace trainfs::oss
