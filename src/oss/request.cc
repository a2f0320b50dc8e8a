#include "oss/request.h"

#include <algorithm>
#include <cstring>

#include "trainfs/logging.h"
#include "trainfs/object_id.h"

namespace trainfs::oss {

namespace {

// What became of one extent.
struct Outcome {
  int error = 0;  // an errno
  BulkExtent extent;
  std::vector<uint64_t> sums;
  std::span<const std::byte> data;
};

BulkHeader replyHeader(const BulkHeader& request) {
  BulkHeader header;
  header.op = request.op;
  header.requestId = request.requestId;
  header.session = request.session;
  header.epoch = request.epoch;
  header.chain = request.chain;
  header.chainVersion = request.chainVersion;
  header.lane = request.lane;
  header.flags = kBulkReply;
  return header;
}

std::vector<std::byte> encodeHead(BulkHeader header, const std::vector<Outcome>& outcomes) {
  std::vector<std::byte> head(sizeof header);
  auto append = [&](const void* data, size_t bytes) {
    auto* from = static_cast<const std::byte*>(data);
    head.insert(head.end(), from, from + bytes);
  };
  for (auto& outcome : outcomes) append(&outcome.extent, sizeof outcome.extent);
  for (auto& outcome : outcomes) {
    append(outcome.sums.data(), outcome.sums.size() * sizeof(uint64_t));
    header.sumCount += outcome.sums.size();
    header.payloadBytes += outcome.data.size();
  }
  header.extentCount = outcomes.size();
  sealHead(header, std::span(head).subspan(sizeof header));
  std::memcpy(head.data(), &header, sizeof header);
  return head;
}

// Runs one extent of a request. `memory`: the extent's part of the request's buffer.
class ExtentRun {
 public:
  ExtentRun(ObjectStore& store, const std::string& ostName, const Request& request,
            const BulkExtent& extent, std::span<std::byte> memory, const uint64_t* sums,
            Outcome& outcome)
      : store_(store),
        ostName_(ostName),
        op_(request.header.op),
        registration_(request.registration),
        extent_(extent),
        object_(decodeObjectId(extent.object)),
        memory_(memory),
        sums_(sums),
        outcome_(outcome) {
    outcome_.extent = extent;
    outcome_.extent.flags = 0;
  }

  Task<> run() {
    switch (op_) {
      case BulkOp::kRead:
        return read();
      case BulkOp::kWrite:
        return write();
      case BulkOp::kPunch:
      case BulkOp::kSync:
        return change();
      case BulkOp::kStat:
        return stat();
      case BulkOp::kHello:
        break;  // never comes here
    }
    std::abort();
  }

 private:
  FileRange range() const { return {extent_.offsetBytes, extent_.lengthBytes}; }

  void missing() {
    outcome_.extent.flags = kExtentMissing;
    if (!(extent_.flags & kExtentMustExist)) return;
    spdlog::error("{}: object {} is not here, but must exist", ostName_, objectIdHex(object_));
    outcome_.error = EIO;
  }

  Task<> read() {
    bool verify = extent_.flags & kExtentVerify;
    auto slice = co_await store_.read(object_, range(), memory_, verify);
    outcome_.extent.lengthBytes = 0;
    outcome_.error = slice.errnoOrZero();
    if (!slice) co_return;
    if (slice->missing) co_return missing();
    outcome_.extent.lengthBytes = slice->data.size();
    outcome_.data = slice->data;
    outcome_.sums = std::move(slice->sums);
  }

  Task<> write() {
    auto status =
        co_await store_.write(object_, extent_.offsetBytes, memory_, sums_, registration_);
    outcome_.error = status.errnoOrZero();
    outcome_.extent.verifier = store_.verifier();
  }

  Task<> change() {
    auto existed = op_ == BulkOp::kPunch ? co_await store_.punch(object_, range(), registration_)
                                         : co_await store_.sync(object_);
    outcome_.error = existed.errnoOrZero();
    if (existed && !*existed) co_return missing();
    outcome_.extent.verifier = store_.verifier();
  }

  Task<> stat() {
    auto figures = co_await store_.stat(object_);
    outcome_.error = figures.errnoOrZero();
    if (!figures) co_return;
    if (!figures->exists) co_return missing();
    outcome_.extent.offsetBytes = figures->sizeBytes;
    outcome_.extent.lengthBytes =
        std::min<uint64_t>((figures->usedBytes + 4095) / 4096, 0xffffffffu);
  }

  ObjectStore& store_;
  const std::string& ostName_;
  const BulkOp op_;
  const uint32_t registration_;
  const BulkExtent extent_;
  const ObjectId object_;
  const std::span<std::byte> memory_;
  const uint64_t* const sums_;
  Outcome& outcome_;
};

Task<> countDown(Task<> task, size_t& left, Event& done) {
  co_await std::move(task);
  if (--left == 0) done.set();
}

Task<> runAll(Reactor& reactor, std::vector<ExtentRun>& runs) {
  if (runs.size() == 1) {
    co_await runs.front().run();
    co_return;
  }
  Event done(reactor);
  size_t left = runs.size();
  for (auto& run : runs) spawn(countDown(run.run(), left, done));
  co_await done;
}

bool payloadIsWhole(const Request& request) {
  auto payload = request.buffer.memory().first(request.header.payloadBytes);
  const uint64_t* sums = request.sums.data();
  for (auto& extent : request.extents) {
    if (!verifyPieces(extent.offsetBytes, payload.first(extent.lengthBytes), sums)) return false;
    payload = payload.subspan(extent.lengthBytes);
    sums += blockPieces(extent.offsetBytes, extent.lengthBytes);
  }
  return true;
}

}  // namespace

size_t Request::bufferBytes(const BulkHeader& header, std::span<const BulkExtent> extents) {
  if (header.op != BulkOp::kRead) return header.payloadBytes;
  size_t bytes = 0;
  for (auto& extent : extents)
    bytes += ObjectStore::roomFor({extent.offsetBytes, extent.lengthBytes});
  return bytes;
}

Reply refuse(const BulkHeader& request, BulkStatus status, uint16_t errorCode) {
  BulkHeader header = replyHeader(request);
  header.status = status;
  header.errorCode = errorCode;
  return {.head = encodeHead(header, {})};
}

Task<Reply> perform(Reactor& reactor, ObjectStore& store, const std::string& ostName,
                    Request& request) {
  const BulkOp op = request.header.op;
  // What the network did to it must not become durable.
  if (op == BulkOp::kWrite && !payloadIsWhole(request))
    co_return refuse(request.header, BulkStatus::kBadSum);

  std::vector<Outcome> outcomes(request.extents.size());
  std::vector<ExtentRun> runs;
  runs.reserve(outcomes.size());
  auto memory = request.buffer.memory();
  const uint64_t* sums = request.sums.data();
  for (size_t i = 0; i < outcomes.size(); ++i) {
    auto& extent = request.extents[i];
    size_t bytes = op == BulkOp::kWrite ? extent.lengthBytes
                   : op == BulkOp::kRead
                       ? ObjectStore::roomFor({extent.offsetBytes, extent.lengthBytes})
                       : 0;
    runs.emplace_back(store, ostName, request, extent, memory.first(bytes), sums, outcomes[i]);
    memory = memory.subspan(bytes);
    if (op == BulkOp::kWrite) sums += blockPieces(extent.offsetBytes, extent.lengthBytes);
  }
  co_await runAll(reactor, runs);

  for (auto& outcome : outcomes) {
    if (outcome.error == EAGAIN) co_return refuse(request.header, BulkStatus::kRetry);
    if (outcome.error != 0)
      co_return refuse(request.header, BulkStatus::kIoError, static_cast<uint16_t>(outcome.error));
  }
  Reply reply{.head = encodeHead(replyHeader(request.header), outcomes)};
  if (op != BulkOp::kRead) co_return reply;
  for (auto& outcome : outcomes)
    if (!outcome.data.empty())
      reply.payload.push_back({const_cast<std::byte*>(outcome.data.data()), outcome.data.size()});
  reply.buffer = std::move(request.buffer);
  co_return reply;
}

}  // namespace trainfs::oss
