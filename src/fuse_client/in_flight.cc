#include "fuse_client/in_flight.h"

#include "fuse_client/fuse_request.h"

namespace trainfs::client {

InFlight::InFlight() {
  for (auto& shard : shards_) shard.head.previous = shard.head.next = &shard.head;
}

void InFlight::enter(Request& request) {
  auto& shard = shardOf(request);
  std::lock_guard lock(shard.mutex);
  if (request.answered()) return;  // it leaves after that, and may have done so
  request.next = &shard.head;
  request.previous = shard.head.previous;
  request.previous->next = request.next->previous = &request;
}

void InFlight::leave(Link& request) {
  auto& shard = shardOf(request);
  std::lock_guard lock(shard.mutex);
  if (request.next == nullptr) return;
  request.previous->next = request.next;
  request.next->previous = request.previous;
  request.previous = request.next = nullptr;
}

std::vector<std::weak_ptr<Request>> InFlight::all() {
  std::vector<std::weak_ptr<Request>> requests;
  for (auto& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    for (auto* link = shard.head.next; link != &shard.head; link = link->next)
      requests.push_back(static_cast<Request*>(link)->weak_from_this());
  }
  return requests;
}

}  // namespace trainfs::client
