// Runs plans of object extents against the OSSes: one DataClient per mount, with a few worker
// threads that own all connections (one ring each). Callers on any thread; a call submits and
// returns, and the completion runs on a worker thread, exactly once. Completions must not block.
//
// Failure rules: a lost connection, a restarting OSS, kRetry, kStaleChain and kBadSum on a write
// are retried (same requestId) until the server answers, or, on a `soft` mount, until softTimeout:
// then EIO. Never answered wrongly: a short or damaged reply is not a success. Reads verify sums; a
// mismatch is read again once and then EIO with a log line naming object, offset and both sums.
//
// Changes are answered with verifiers, one per piece or object (BulkExtent::verifier): a change
// that got another one than the sync after it may be lost.
//
// Also: a write that servers keep finding different from its sums is EIO (the memory changed);
// EINVAL for memory that does not fit its extent; EFBIG and EAGAIN beyond the limits in
// data_request.h and request_router.h.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "fuse_client/statistics.h"
#include "trainfs/cluster_map.h"
#include "trainfs/result.h"
#include "trainfs/types.h"

namespace trainfs::client {

struct DataClientOptions {
  uint32_t workers = 2;                 // threads, 1..16
  uint32_t lanesPerWorker = 1;          // connections per OSS data port and worker thread, 1..8
  uint32_t inFlightPerConnection = 64;  // requests; more wait in a bounded queue
  bool soft = false;
  std::chrono::milliseconds softTimeout{60'000};
  Statistics* statistics = nullptr;  // outlives the client; null: nobody counts
};

// One extent and the memory it is read into or written from (data.size() == extent.lengthBytes).
struct ReadPiece {
  ObjectExtent extent;
  std::span<std::byte> data;
  bool mustExist =
      false;  // the MDT says that the object exists: its absence is EIO. Otherwise: zeros
};
struct WritePiece {
  ObjectExtent extent;
  std::span<const std::byte> data;
};
struct ObjectRef {
  ObjectId object;
  ChainId chain;
};
struct ObjectFigures {
  bool exists = false;
  uint64_t sizeBytes = 0, usedBytes = 0;
};

// Set when nobody waits for a read or write any more, whose memory it may keep. Null: never.
using Unwanted = std::shared_ptr<const std::atomic<bool>>;
// Set, before setSession, when a write must not be sent any more, as nobody knows whether it still
// has its place in the file: EIO, also for what waits already. Null: never.
using Misplaced = std::shared_ptr<const std::atomic<bool>>;

// 0: no such object.
using Verifiers = std::vector<uint64_t>;
// The parts of one piece were answered with different ones, so some may be lost already.
inline constexpr uint64_t kVerifiersDiffer = ~uint64_t{0};

class DataClient {
 public:
  using Completion = std::function<void(Status)>;
  using ChangeCompletion = std::function<void(Result<Verifiers>)>;
  using StatCompletion = std::function<void(Result<std::vector<ObjectFigures>>)>;

  static std::unique_ptr<DataClient> create(const DataClientOptions& options);
  // Waits for the worker threads; what is unanswered completes with ESHUTDOWN, on them, or on the
  // calling thread for what completions ask for meanwhile.
  virtual ~DataClient() = default;

  // Called at the start and with every newer map; and with every new session (after an eviction).
  virtual void setMap(ClusterMap map) = 0;
  virtual void setSession(SessionId session, uint32_t epoch) = 0;
  // Before setSession, in place of an earlier list: inodes whose objects are gone. Nothing is sent
  // any more that concerns one, which would make it anew: EIO, also for what waits already.
  virtual void setRemoved(std::vector<InodeId> inodes) = 0;
  // Called on a worker thread when an OSS says that the session is over (at most once per epoch).
  virtual void onStaleSession(std::function<void()> callback) = 0;

  // The memory of the pieces must stay valid until the completion has run. Bytes beyond an object's
  // end, and objects that need not exist, read as zeros.
  virtual void read(std::vector<ReadPiece> pieces, Completion done, Unwanted unwanted = {}) = 0;
  virtual void write(std::vector<WritePiece> pieces, ChangeCompletion done, Unwanted unwanted = {},
                     Misplaced misplaced = {}) = 0;
  // Some have become unwanted: what of them no server can have yet is not sent any more, and they
  // complete with EINTR.
  virtual void withdraw() = 0;
  virtual void punch(std::vector<ObjectExtent> extents, ChangeCompletion done) = 0;
  virtual void sync(std::vector<ObjectRef> objects, ChangeCompletion done) = 0;
  virtual void stat(std::vector<ObjectRef> objects, StatCompletion done) = 0;
};

}  // namespace trainfs::client
