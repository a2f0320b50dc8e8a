#include "fuse_client/data_client.h"

#include <algorithm>
#include <stdexcept>

#include "fuse_client/data_request.h"
#include "fuse_client/request_router.h"

namespace trainfs::client {

namespace {

// Cuts what callers ask for into frames and hands these to the router. No state of its own.
class RoutedDataClient final : public DataClient {
 public:
  explicit RoutedDataClient(const DataClientOptions& options) : router_(options) {
    router_.start();
  }
  ~RoutedDataClient() override { router_.stop(); }

  void setMap(ClusterMap map) override { router_.setMap(std::move(map)); }
  void setSession(SessionId session, uint32_t epoch) override {
    router_.setSession({session, epoch});
  }
  void setRemoved(std::vector<InodeId> inodes) override { router_.setRemoved(std::move(inodes)); }
  void onStaleSession(std::function<void()> callback) override {
    router_.onStaleSession(std::move(callback));
  }

  void read(std::vector<ReadPiece> pieces, Completion done, Unwanted unwanted) override {
    Plan plan(router_, BulkOp::kRead);
    plan.operation().unwanted = std::move(unwanted);
    plan.operation().done = std::move(done);
    for (const ReadPiece& piece : pieces) {
      plan.add(piece.extent,
               {.flags = piece.mustExist ? kExtentMustExist : 0, .data = piece.data.data()},
               piece.data.size());
    }
    plan.submit();
  }

  void write(std::vector<WritePiece> pieces, ChangeCompletion done, Unwanted unwanted,
             Misplaced misplaced) override {
    Plan plan(router_, BulkOp::kWrite, pieces.size(), std::move(done));
    plan.operation().unwanted = std::move(unwanted);
    plan.operation().misplaced = std::move(misplaced);
    for (const WritePiece& piece : pieces)
      plan.add(piece.extent, {.data = const_cast<std::byte*>(piece.data.data())},
               piece.data.size());
    plan.submit();
  }

  void withdraw() override { router_.withdraw(); }

  void punch(std::vector<ObjectExtent> extents, ChangeCompletion done) override {
    Plan plan(router_, BulkOp::kPunch, extents.size(), std::move(done));
    for (const ObjectExtent& extent : extents) plan.add(extent, {}, extent.lengthBytes);
    plan.submit();
  }

  void sync(std::vector<ObjectRef> objects, ChangeCompletion done) override {
    Plan plan(router_, BulkOp::kSync, objects.size(), std::move(done));
    for (const ObjectRef& object : objects) plan.addObject(object);
    plan.submit();
  }

  void stat(std::vector<ObjectRef> objects, StatCompletion done) override {
    Plan plan(router_, BulkOp::kStat);
    plan.operation().statDone = std::move(done);
    plan.operation().figures.resize(objects.size());
    for (const ObjectRef& object : objects) plan.addObject(object);
    plan.submit();
  }

 private:
  // One call under construction.
  class Plan {
   public:
    Plan(RequestRouter& router, BulkOp op)
        : router_(router),
          operation_(std::make_unique<Operation>()),
          planner_(
              router.pool(), [&router](ChainId chain) { return router.portCount(chain); },
              operation_.get(), op) {}
    Plan(RequestRouter& router, BulkOp op, size_t pieces, ChangeCompletion done)
        : Plan(router, op) {
      operation_->changeDone = std::move(done);
      operation_->verifiers.resize(pieces);
    }
    Operation& operation() { return *operation_; }

    // `memoryBytes` of memory for the extent: anything but its length is a bug of the caller.
    void add(const ObjectExtent& extent, Slice slice, uint64_t memoryBytes) {
      slice.piece = pieces_++;
      bool valid = extent.lengthBytes == memoryBytes && extent.objectOffsetBytes <= kFileBytesMax &&
                   extent.lengthBytes <= kFileBytesMax - extent.objectOffsetBytes;
      if (!valid) error_ = EINVAL;
      if (!valid || extent.lengthBytes == 0) return;
      slice.object = extent.object;
      slice.offsetBytes = extent.objectOffsetBytes;
      planner_.add(extent.chain, extent.lengthBytes, slice);
    }
    void addObject(const ObjectRef& object) {
      planner_.add(object.chain, 0, {.object = object.object, .piece = pieces_++});
    }

    void submit() {
      int error = 0;
      RequestList requests;
      if (error_ == 0) requests = planner_.finish(error);
      if (error_ != 0) error = error_;
      if (requests.empty()) {
        router_.completeSoon(operation_.release(), error);
      } else {
        router_.submit(operation_.release(), std::move(requests));
      }
    }

   private:
    RequestRouter& router_;
    std::unique_ptr<Operation> operation_;
    FramePlanner planner_;
    uint32_t pieces_ = 0;
    int error_ = 0;
  };

  RequestRouter router_;
};

}  // namespace

std::unique_ptr<DataClient> DataClient::create(const DataClientOptions& options) {
  DataClientOptions checked = options;
  checked.workers = std::clamp(options.workers, 1u, 16u);
  checked.lanesPerWorker = std::clamp(options.lanesPerWorker, 1u, 8u);
  checked.inFlightPerConnection = std::clamp(options.inFlightPerConnection, 1u, 1024u);
  return std::make_unique<RoutedDataClient>(checked);
}

}  // namespace trainfs::client
