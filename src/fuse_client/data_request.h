// What a DataClient has under way: an Operation is one call of a caller, cut into Requests of one
// frame each. A Request is in exactly one place at a time: a connection's list, a worker's parked
// ones, or the pool. Whoever holds it there owns it; nothing here locks except the pool.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "fuse_client/data_client.h"
#include "trainfs/bulk.h"

namespace trainfs::client {

using Instant = std::chrono::steady_clock::time_point;

// Payload of one frame: big requests are cut so that disk, wire and sums of neighbours overlap.
inline constexpr uint32_t kFrameBytes = kMiB;
static_assert(kFrameBytes % kBlockBytes == 0 && kFrameBytes <= kBulkPayloadBytesMax);
// An extent without payload: the most whole blocks that 32 bits count.
inline constexpr uint32_t kPunchBytes = 4 * kGiB - kBlockBytes;
// Extents of one operation, after cutting: 64 GiB of data, a punch of 256 TiB. More is EFBIG.
inline constexpr uint32_t kExtentsPerOperation = 65536;
inline constexpr uint32_t kPooledRequests = 1024;

struct Operation {
  // Exactly one of the three is set.
  DataClient::Completion done;  // of a read
  DataClient::ChangeCompletion changeDone;
  DataClient::StatCompletion statDone;
  // By piece: of a change or sync, of a stat.
  Verifiers verifiers;
  std::vector<ObjectFigures> figures;
  Unwanted unwanted;
  Misplaced misplaced;
  std::atomic<uint32_t> requestsLeft{0};
  std::atomic<int> error{0};  // the first one stays

  // What a part of a piece was answered with. Any worker.
  void noteVerifier(uint32_t piece, uint64_t verifier);
  void complete();  // calls back; no request may be left
  bool isUnwanted() const {
    return unwanted != nullptr && unwanted->load(std::memory_order_acquire);
  }
  bool isMisplaced() const {
    return misplaced != nullptr && misplaced->load(std::memory_order_acquire);
  }
};

// One extent of a frame, and its memory.
struct Slice {
  ObjectId object;
  uint64_t offsetBytes = 0;
  uint32_t lengthBytes = 0;
  uint32_t flags = 0;         // kExtentMustExist, kExtentVerify
  std::byte* data = nullptr;  // a write never changes it
  uint32_t piece = 0;         // of the operation
};

struct Request {
  Request* next = nullptr;
  Request* previous = nullptr;
  Operation* operation = nullptr;
  BulkOp op = BulkOp::kRead;
  ChainId chain;
  uint32_t port = 0;          // which data port of the OST all its objects belong to...
  uint32_t portCount = 0;     // ...when the OST has so many; 0: not known yet
  uint64_t id = 0;            // stays the same however often it is sent
  uint32_t payloadBytes = 0;  // of a read's reply at most, of a write exactly
  uint32_t badSums = 0;
  uint32_t refusals = 0;  // kRetry in a row
  bool sent = false;      // a server may have it: still carry it out, or use its memory
  Instant started;
  std::vector<Slice> slices;
  std::vector<uint64_t> sums;  // of a write

  bool canBeLeftOut() const { return !sent && operation->isUnwanted(); }
};

// A list through Request::next and previous. Owns what is in it, but does not free it.
class RequestList {
 public:
  RequestList() = default;
  RequestList(RequestList&& other) noexcept { swap(other); }
  RequestList& operator=(RequestList&& other) noexcept {
    swap(other);
    return *this;
  }

  bool empty() const { return first_ == nullptr; }
  uint32_t size() const { return size_; }
  Request* first() const { return first_; }
  Request* last() const { return last_; }
  void pushBack(Request* request);
  Request* popFront();
  void remove(Request* request);
  // Puts all of `other` before (after) what is here, order kept.
  void prepend(RequestList& other);
  void append(RequestList& other) {
    other.prepend(*this);
    swap(other);
  }

 private:
  void swap(RequestList& other);
  Request* first_ = nullptr;
  Request* last_ = nullptr;
  uint32_t size_ = 0;
};

// Keeps requests, because their vectors are what would be allocated anew for each frame. Any
// thread.
class RequestPool {
 public:
  ~RequestPool();
  Request* take();
  void give(Request* request);

 private:
  std::mutex mutex_;
  std::vector<Request*> free_;  // at most kPooledRequests
};

// Cuts what an operation is about into frames: one chain, one data port, at most kBulkExtentsMax
// extents and kFrameBytes of payload each. On the thread of the caller.
class FramePlanner {
 public:
  // portCount: how many data ports the OST of a chain has, 0 when it is not in the map.
  FramePlanner(RequestPool& pool, std::function<uint32_t(ChainId)> portCount, Operation* operation,
               BulkOp op);
  ~FramePlanner();

  void add(ChainId chain, uint64_t lengthBytes, Slice slice);
  // The frames, with the sums of a write; empty and an errno in `error` when it came to more than
  // is allowed.
  RequestList finish(int& error);

 private:
  Request* frameFor(ChainId chain, const Slice& slice);
  RequestPool& pool_;
  std::function<uint32_t(ChainId)> portCount_;
  Operation* operation_;
  BulkOp op_;
  RequestList frames_;
  uint32_t extents_ = 0;
};

}  // namespace trainfs::client
