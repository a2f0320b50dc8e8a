// The memory of one caller's read or write, until the OSTs are through with it. When the caller is
// killed before that, it is given back at once if no OST was asked yet. Any thread.
#pragma once

#include <atomic>
#include <memory>

#include "fuse_client/buffer_pool.h"
#include "fuse_client/data_client.h"
#include "fuse_client/places.h"

namespace trainfs::client {

class Transfer : public std::enable_shared_from_this<Transfer> {
 public:
  Transfer(BufferPool::Buffer buffer, Places::Place place)
      : buffer_(std::move(buffer)), place_(std::move(place)) {}

  std::byte* memory() { return buffer_.get(); }
  // OSTs are to be asked now. False: nobody waits for it any more, and the memory is gone.
  bool begin() {
    auto waiting = State::kWaiting;
    return state_.compare_exchange_strong(waiting, State::kBegun);
  }
  // Nobody waits for it any more. True: it had not begun, and never will.
  bool withdraw() {
    unwanted_.store(true, std::memory_order_release);
    auto waiting = State::kWaiting;
    if (!state_.compare_exchange_strong(waiting, State::kWithdrawn)) return false;
    buffer_.reset();
    place_.reset();
    return true;
  }
  // For the requests to the OSTs; keeps the memory as long as one of them may be under way.
  Unwanted unwanted() { return Unwanted(shared_from_this(), &unwanted_); }

 private:
  enum class State : uint8_t { kWaiting, kBegun, kWithdrawn };

  BufferPool::Buffer buffer_;
  Places::Place place_;
  std::atomic<State> state_{State::kWaiting};
  std::atomic<bool> unwanted_{false};
};
using TransferPtr = std::shared_ptr<Transfer>;

}  // namespace trainfs::client
