// The requests that are with servers at present, so that those whose callers are being killed can
// be found. Any thread; entering and leaving cost a lock that is hardly ever contended.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace trainfs::client {

class Request;

class InFlight {
 public:
  // What a request inherits: its place in a list. Not in one while `next` is null.
  struct Link {
    Link* previous = nullptr;
    Link* next = nullptr;
  };

  InFlight();

  // Unless it is answered already. From then on another thread may answer it at any moment.
  void enter(Request& request);
  void leave(Link& request);
  std::vector<std::weak_ptr<Request>> all();

 private:
  static constexpr size_t kShards = 16;
  struct Shard {
    std::mutex mutex;
    Link head;  // of a ring
  };
  Shard& shardOf(const Link& request) {
    return shards_[(reinterpret_cast<uintptr_t>(&request) / kSpacing) % kShards];
  }
  static constexpr uintptr_t kSpacing = 256;  // neighbours on the heap in different shards

  std::array<Shard, kShards> shards_;
};

}  // namespace trainfs::client
