#include "oss/control_rpc.h"

#include <kj/async.h>
#include <kj/debug.h>

#include <cstring>
#include <mutex>
#include <optional>

#include "trainfs/bulk.h"
#include "trainfs/logging.h"
#include "trainfs/object_id.h"

namespace trainfs::oss {

namespace {

using Workers = std::span<const std::unique_ptr<WorkerThread>>;
using Figures = ObjectStore::Figures;
using Cuts = std::vector<DataWorker::Cut>;
using Statuses = std::vector<Status>;

// Runs a task on a worker's thread; the promise resolves here, with what it returned. That passes
// under a mutex of ours: the thread sanitizer knows nothing of kj's.
template <typename T>
kj::Promise<T> runOn(WorkerThread& worker, std::function<Task<T>(DataWorker&)> start) {
  struct Outcome {
    std::mutex mutex;
    std::optional<T> value;
    kj::Own<kj::CrossThreadPromiseFulfiller<void>> fulfiller;
  };
  auto ready = kj::newPromiseAndCrossThreadFulfiller<void>();
  auto outcome = std::make_shared<Outcome>();
  outcome->fulfiller = kj::mv(ready.fulfiller);
  worker.post([start = std::move(start), outcome](DataWorker& worker) {
    auto carry = [](DataWorker& worker, auto start, auto outcome) -> Task<> {
      T value = co_await start(worker);
      {
        std::lock_guard lock(outcome->mutex);
        outcome->value = std::move(value);
      }
      outcome->fulfiller->fulfill();
    };
    worker.start(carry(worker, start, outcome));
  });
  return ready.promise.then([outcome] {
    std::lock_guard lock(outcome->mutex);
    return *std::move(outcome->value);
  });
}

ObjectId decodeObject(capnp::Data::Reader data) {
  KJ_REQUIRE(data.size() == kObjectIdBytes, "an object id has 16 bytes", data.size());
  return decodeObjectId(data.begin());
}

std::vector<ObjectId> decodeObjects(capnp::List<capnp::Data>::Reader list) {
  std::vector<ObjectId> objects;
  objects.reserve(list.size());
  for (auto data : list) objects.push_back(decodeObject(data));
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
  OssControlServer(uint32_t ost, const Lease& lease, SessionTable& sessions, Workers workers)
      : ost_(ost), lease_(lease), sessions_(sessions), workers_(workers) {}

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

  kj::Promise<void> truncate(TruncateContext context) override {
    uint32_t registration = lease_.registration();  // what comes later is not the caller's
    KJ_REQUIRE(lease_.holdsIn(registration), "the lease of this OST has run out");
    auto list = context.getParams().getCuts();
    std::vector<Cuts> byWorker(workers_.size());
    std::vector<std::vector<uint32_t>> places(workers_.size());  // in that list
    for (uint32_t i = 0; i < list.size(); ++i) {
      auto object = decodeObject(list[i].getObject());
      uint32_t worker = workerOf(object, workers_.size());
      byWorker[worker].push_back({object, list[i].getSizeBytes()});
      places[worker].push_back(i);
    }
    auto calls = kj::heapArrayBuilder<kj::Promise<Statuses>>(workers_.size());
    for (size_t i = 0; i < workers_.size(); ++i)
      calls.add(runOn<Statuses>(*workers_[i],
                                [ost = ost_, registration, mine = byWorker[i]](DataWorker& worker) {
                                  return worker.truncate(ost, mine, registration);
                                }));
    auto parts = co_await kj::joinPromises(calls.finish());
    auto errors = context.getResults().initErrors(list.size());
    for (size_t worker = 0; worker < parts.size(); ++worker) {
      for (size_t i = 0; i < parts[worker].size(); ++i) {
        auto& status = parts[worker][i];
        KJ_REQUIRE(status.ok() || !mayPass(status.error()), "an object cannot be cut now",
                   objectIdHex(byWorker[worker][i].object).c_str(), strerror(status.errnoOrZero()));
        errors.set(places[worker][i], status.errnoOrZero());
      }
    }
  }

 private:
  const uint32_t ost_;
  const Lease& lease_;
  SessionTable& sessions_;
  const Workers workers_;
};

}  // namespace

rpc::OssControl::Client makeOssControl(uint32_t ost, const Lease& lease, SessionTable& sessions,
                                       Workers workers) {
  return kj::heap<OssControlServer>(ost, lease, sessions, workers);
}

}  // namespace trainfs::oss
