#include "fuse_client/data_request.h"

#include <algorithm>
#include <cerrno>

namespace trainfs::client {

namespace {

// How many open frames are looked through for room. More chains than this in one operation (a sync
// of a very wide file) come to a few more frames, not to a quadratic search.
constexpr int kOpenFramesSearched = 64;

bool hasPayload(BulkOp op) {
  return op == BulkOp::kRead || op == BulkOp::kWrite;
}

}  // namespace

void Operation::noteVerifier(uint32_t piece, uint64_t verifier) {
  if (verifier == 0) return;
  std::atomic_ref place(verifiers[piece]);
  uint64_t before = 0;
  if (!place.compare_exchange_strong(before, verifier) && before != verifier)
    place.store(kVerifiersDiffer);
}

void Operation::complete() {
  int code = error.load(std::memory_order_acquire);
  if (statDone) {
    statDone(code == 0 ? Result<std::vector<ObjectFigures>>(std::move(figures)) : Errno(code));
  } else if (changeDone) {
    changeDone(code == 0 ? Result<Verifiers>(std::move(verifiers)) : Errno(code));
  } else {
    done(code == 0 ? Status(Done{}) : Status(Errno(code)));
  }
}

void RequestList::pushBack(Request* request) {
  request->next = nullptr;
  request->previous = last_;
  (last_ == nullptr ? first_ : last_->next) = request;
  last_ = request;
  ++size_;
}

Request* RequestList::popFront() {
  Request* request = first_;
  if (request != nullptr) remove(request);
  return request;
}

void RequestList::remove(Request* request) {
  (request->previous == nullptr ? first_ : request->previous->next) = request->next;
  (request->next == nullptr ? last_ : request->next->previous) = request->previous;
  request->next = request->previous = nullptr;
  --size_;
}

void RequestList::prepend(RequestList& other) {
  if (other.empty()) return;
  other.last_->next = first_;
  (first_ == nullptr ? last_ : first_->previous) = other.last_;
  first_ = other.first_;
  size_ += other.size_;
  other.first_ = other.last_ = nullptr;
  other.size_ = 0;
}

void RequestList::swap(RequestList& other) {
  std::swap(first_, other.first_);
  std::swap(last_, other.last_);
  std::swap(size_, other.size_);
}

RequestPool::~RequestPool() {
  for (Request* request : free_) delete request;
}

Request* RequestPool::take() {
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      Request* request = free_.back();
      free_.pop_back();
      return request;
    }
  }
  return new Request;
}

void RequestPool::give(Request* request) {
  request->slices.clear();
  request->sums.clear();
  request->operation = nullptr;
  request->payloadBytes = request->badSums = request->refusals = 0;
  request->sent = false;
  std::lock_guard lock(mutex_);
  if (free_.size() < kPooledRequests) {
    free_.push_back(request);
  } else {
    delete request;
  }
}

FramePlanner::FramePlanner(RequestPool& pool, std::function<uint32_t(ChainId)> portCount,
                           Operation* operation, BulkOp op)
    : pool_(pool), portCount_(std::move(portCount)), operation_(operation), op_(op) {}

FramePlanner::~FramePlanner() {
  while (Request* frame = frames_.popFront()) pool_.give(frame);
}

void FramePlanner::add(ChainId chain, uint64_t lengthBytes, Slice slice) {
  const uint32_t most = hasPayload(op_) ? kFrameBytes : kPunchBytes;
  do {
    if (++extents_ > kExtentsPerOperation) return;
    // Cut at a block border, so that no block is summed in two parts for it.
    uint64_t piece = lengthBytes <= most ? lengthBytes : most - slice.offsetBytes % kBlockBytes;
    slice.lengthBytes = static_cast<uint32_t>(piece);
    Request* frame = frameFor(chain, slice);
    frame->slices.push_back(slice);
    if (hasPayload(op_)) frame->payloadBytes += slice.lengthBytes;
    lengthBytes -= piece;
    slice.offsetBytes += piece;
    if (slice.data != nullptr) slice.data += piece;
  } while (lengthBytes > 0);
}

Request* FramePlanner::frameFor(ChainId chain, const Slice& slice) {
  Request* last = frames_.last();
  uint32_t portCount =
      last != nullptr && last->chain == chain ? last->portCount : portCount_(chain);
  uint32_t port = portCount == 0 ? 0 : workerOf(slice.object, portCount);
  int searched = 0;
  for (Request* frame = last; frame != nullptr && searched < kOpenFramesSearched;
       frame = frame->previous, ++searched) {
    bool fits = frame->chain == chain && frame->port == port && frame->portCount == portCount &&
                frame->slices.size() < kBulkExtentsMax &&
                (!hasPayload(op_) || frame->payloadBytes + slice.lengthBytes <= kFrameBytes);
    if (fits) return frame;
  }
  Request* frame = pool_.take();
  frame->operation = operation_;
  frame->op = op_;
  frame->chain = chain;
  frame->port = port;
  frame->portCount = portCount;
  frames_.pushBack(frame);
  return frame;
}

RequestList FramePlanner::finish(int& error) {
  error = 0;
  if (extents_ > kExtentsPerOperation) {
    error = EFBIG;
    return {};
  }
  if (op_ == BulkOp::kWrite) {
    for (Request* frame = frames_.first(); frame != nullptr; frame = frame->next) {
      for (const Slice& slice : frame->slices) {
        size_t before = frame->sums.size();
        frame->sums.resize(before + blockPieces(slice.offsetBytes, slice.lengthBytes));
        sumPieces(slice.offsetBytes, {slice.data, slice.lengthBytes}, frame->sums.data() + before);
      }
    }
  }
  return std::move(frames_);
}

}  // namespace trainfs::client
