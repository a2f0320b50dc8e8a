// A data client whose calls can be waited for, and what it is asked to do, against FakeOss.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdlib>
#include <future>
#include <initializer_list>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "fake_oss.h"
#include "fuse_client/data_client.h"
#include "lib/eventually.h"
#include "lib/seed.h"

namespace trainfs::client {

using namespace std::chrono_literals;
using test::Random;

inline constexpr auto kPatience =
    60s;  // for what must happen; nothing waits that long in a passing run

inline ObjectId objectId(uint32_t stripe) {
  return {.inode = {100}, .generation = 1, .stripe = stripe};
}

inline ObjectExtent extentOf(uint32_t stripe, uint64_t offset, uint64_t length,
                             uint32_t chain = 0) {
  return {.object = objectId(stripe),
          .chain = {chain},
          .objectOffsetBytes = offset,
          .lengthBytes = length};
}

inline std::vector<std::byte> randomBytes(Random& random, size_t bytes) {
  std::vector<std::byte> data(bytes);
  uint64_t value = random.between(0, ~uint64_t{0});
  for (size_t i = 0; i < bytes; ++i) {
    value = value * 6364136223846793005u + 1442695040888963407u;
    data[i] = static_cast<std::byte>(value >> 56);
  }
  return data;
}

inline ClusterMap mapOf(std::initializer_list<const FakeOss*> servers, uint64_t version = 1) {
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

// The errno that it is answered with.
inline int outcomeOf(std::promise<int>& promise) {
  auto answer = promise.get_future();
  REQUIRE(answer.wait_for(kPatience) == std::future_status::ready);
  return answer.get();
}

template <typename Condition>
bool eventually(Condition condition) {
  return test::eventually(std::move(condition), kPatience);
}

// The first request (or the first `count`) of an operation has the fault, the others none.
inline FakeOss::Choose faultOnce(BulkOp op, Fault fault, int count = 1) {
  return [=, left = std::make_shared<int>(count)](const BulkHeader& header) {
    return header.op == op && (*left)-- > 0 ? fault : Fault::kNone;
  };
}

}  // namespace trainfs::client
