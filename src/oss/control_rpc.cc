#include "oss/control_rpc.h"

#include <kj/async.h>
#include <kj/debug.h>

#include <cstring>

#include "trainfs/bulk.h"
#include "trainfs/logging.h"
#include "trainfs/object_id.h"

namespace trainfs::oss {

namespace {

using Workers = std::span<const std::unique_ptr<WorkerThread>>;
using Figures = ObjectStore::Figures;

// Runs a task on a worker's thread; the promise resolves here, with what it returned.
template <typename T>
kj::Promise<T> runOn(WorkerThread& worker, std::function<Task<T>(DataWorker&)> start) {
  auto outcome = kj::newPromiseAndCrossThreadFulfiller<T>();
  auto fulfiller =
      std::make_shared<kj::Own<kj::CrossThreadPromiseFulfiller<T>>>(kj::mv(outcome.fulfiller));
  worker.post([start = std::move(start), fulfiller](DataWorker& worker) {
    auto carry = [](DataWorker& worker, auto start, auto fulfiller) -> Task<> {
      T value = co_await start(worker);
      (*fulfiller)->fulfill(std::move(value));
    };
    worker.start(carry(worker, start, fulfiller));
  });
  return kj::mv(outcome.promise);
}

std::vector<ObjectId> decodeObjects(capnp::List<capnp::Data>::Reader list) {
  std::vector<ObjectId> objects;
  objects.reserve(list.size());
  for (auto data : list) {
    KJ_REQUIRE(data.size() == kObjectIdBytes, "an object id has 16 bytes", data.size());
    objects.push_back(decodeObjectId(data.begin()));
  }
  return objects;
}

Task<bool> fenceOn(DataWorker& worker, SessionId session, uint32_t epoch) {
  co_await worker.fence(session, epoch);
  co_return true;
}

Task<int> destroyOn(DataWorker& worker, uint32_t ost, std::vector<ObjectId> objects) {
  co_return (co_await worker.destroy(ost, std::move(objects))).errnoOrZero();
}

// Figures of an object by its place in the MDS's list.
using Found = std::vector<std::pair<size_t, Result<Figures>>>;
using Wanted = std::vector<std::pair<size_t, ObjectId>>;

Task<Found> statOn(DataWorker& worker, uint32_t ost, Wanted wanted) {
  Found found;
  for (auto& [place, object] : wanted)
    found.emplace_back(place, co_await worker.store(ost).stat(object));
  co_return found;
}

// Of this server's state, not of the object's.
bool mayPass(Errno error) {
  switch (error.code()) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
      return true;
    default:
      return false;
  }
}

class OssControlServer final : public rpc::OssControl::Server {
 public:
  OssControlServer(uint32_t ost, SessionTable& sessions, Workers workers)
      : ost_(ost), sessions_(sessions), workers_(workers) {}

 protected:
  kj::Promise<void> destroy(DestroyContext context) override {
    std::vector<std::vector<ObjectId>> byWorker(workers_.size());
    for (auto& object : decodeObjects(context.getParams().getObjects()))
      byWorker[workerOf(object, workers_.size())].push_back(object);
    auto calls = kj::heapArrayBuilder<kj::Promise<int>>(workers_.size());
    for (size_t i = 0; i < workers_.size(); ++i)
      calls.add(runOn<int>(*workers_[i], [ost = ost_, mine = byWorker[i]](DataWorker& worker) {
        return destroyOn(worker, ost, mine);
      }));
    for (int error : co_await kj::joinPromises(calls.finish()))
      KJ_REQUIRE(error == 0, "some objects could not be destroyed", strerror(error));
  }

  kj::Promise<void> stat(StatContext context) override {
    auto objects = decodeObjects(context.getParams().getObjects());
    std::vector<Wanted> byWorker(workers_.size());
    for (size_t i = 0; i < objects.size(); ++i)
      byWorker[workerOf(objects[i], workers_.size())].emplace_back(i, objects[i]);
    auto calls = kj::heapArrayBuilder<kj::Promise<Found>>(workers_.size());
    for (size_t i = 0; i < workers_.size(); ++i)
      calls.add(runOn<Found>(*workers_[i], [ost = ost_, mine = byWorker[i]](DataWorker& worker) {
        return statOn(worker, ost, mine);
      }));
    auto parts = co_await kj::joinPromises(calls.finish());
    auto results = context.getResults().initResults(objects.size());
    for (auto& part : parts) {
      for (auto& [place, figures] : part) {
        auto out = results[place];
        if (!figures) {
          KJ_REQUIRE(!mayPass(figures.error()), "an object cannot be looked at now",
                     objectIdHex(objects[place]).c_str(), strerror(figures.error().code()));
          out.setError(figures.error().code());
          continue;
        }
        out.setExists(figures->exists);
        out.setSizeBytes(figures->sizeBytes);
        out.setUsedBytes(figures->usedBytes);
        out.setMtimeSeconds(figures->mtime.seconds);
        out.setMtimeNanoseconds(figures->mtime.nanoseconds);
      }
    }
  }

  kj::Promise<void> fence(FenceContext context) override {
    SessionId session{context.getParams().getSession()};
    uint32_t epoch = context.getParams().getEpoch();
    spdlog::info("session {:x} is fenced up to epoch {}", session.value, epoch);
    sessions_.fence(session, epoch);
    auto calls = kj::heapArrayBuilder<kj::Promise<bool>>(workers_.size());
    for (auto& worker : workers_)
      calls.add(runOn<bool>(*worker,
                            [=](DataWorker& worker) { return fenceOn(worker, session, epoch); }));
    co_await kj::joinPromises(calls.finish());
  }

 private:
  const uint32_t ost_;
  SessionTable& sessions_;
  const Workers workers_;
};

}  // namespace

rpc::OssControl::Client makeOssControl(uint32_t ost, SessionTable& sessions, Workers workers) {
  return kj::heap<OssControlServer>(ost, sessions, workers);
}

}  // namespace trainfs::oss
