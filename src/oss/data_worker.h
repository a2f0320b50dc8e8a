// One data worker: a thread with one io_uring and one listening port, which owns the objects that
// workerOf() gives it, on every OST of this process. No kj here.
//
// DataWorker lives on the worker's thread; WorkerThread is the handle that others hold.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "oss/connection.h"
#include "oss/ost.h"
#include "oss/statistics.h"

namespace trainfs::oss {

struct WorkerConfig {
  uint32_t number = 0;  // of `count` workers
  uint32_t count = 1;
  uint32_t connectionsMax = 1024;
  ObjectStoreLimits limits;
};

class DataWorker {
 public:
  // Takes over the listening socket. What is passed by reference outlives the worker.
  DataWorker(const WorkerConfig& config, int listener, std::span<const std::unique_ptr<Ost>> osts,
             SessionTable& sessions, SessionVerifier& verifier);
  ~DataWorker();
  DataWorker(const DataWorker&) = delete;

  // Serves until stop(): then what is in flight is finished and every dirty object cleaned.
  void run();
  void stop() { stopping_ = true; }
  // Runs a task that the worker's end waits for.
  void start(Task<> task) { spawn(counted(std::move(task))); }

  Reactor& reactor() { return reactor_; }
  BufferPool& buffers() { return buffers_; }
  SessionTable& sessions() { return sessions_; }
  SessionVerifier& verifier() { return verifier_; }
  WorkerStatistics& statistics() { return statistics_; }
  ObjectStore& store(uint32_t ost) { return *stores_[ost]; }
  Ost& ost(uint32_t number) { return *osts_[number]; }
  uint32_t ostCount() const { return osts_.size(); }
  std::optional<uint32_t> findOst(uint32_t chain) const;
  bool owns(const ObjectId& object) const;

  // Closes older connections of the same session and lane and waits until they execute nothing.
  Task<> replaceOlder(const Connection& connection);
  // The same for all connections of a session up to an epoch, which the table knows as fenced.
  Task<> fence(SessionId session, uint32_t epoch);
  // All of them are this worker's. The first error, if there is one; then some may be left.
  Task<Status> destroy(uint32_t ost, std::vector<ObjectId> objects);
  struct Cut {
    ObjectId object;
    uint64_t sizeBytes;
  };
  // Durably; what is missing or shorter stays so. All of them are this worker's. An outcome each:
  // see ObjectStore.
  Task<std::vector<Status>> truncate(uint32_t ost, std::vector<Cut> cuts, uint32_t registration);

  // By a connection: it executes nothing any more; it is over (and destroyed here).
  void executionOver() { executionOver_.pulse(); }
  void remove(Connection& connection);

 private:
  static constexpr std::chrono::seconds kTick{1};
  static constexpr uint32_t kChangingMax = 64;          // at a time, for one call
  static constexpr std::chrono::seconds kFinishMax{5};  // for clients to take their last replies

  Task<> counted(Task<> task);
  static Task<> destroyOne(ObjectStore& store, ObjectId object, Permits& permits, Status& status);
  static Task<> cutOne(ObjectStore& store, Cut cut, uint32_t registration, Permits& permits,
                       Status& status);
  // `waiting`: who waits, until it is closed itself; or null.
  template <typename Predicate>
  Task<> closeAndWait(Predicate concerned, std::string reason, const Connection* waiting);
  Task<> accept();
  void admit(int socket);
  void tick(std::chrono::steady_clock::time_point now);
  void publish();
  void shutDown();
  Task<> cleanStores();

  const WorkerConfig config_;
  const int listener_;
  const std::span<const std::unique_ptr<Ost>> osts_;
  SessionTable& sessions_;
  SessionVerifier& verifier_;
  Reactor reactor_;
  BufferPool buffers_;
  std::vector<std::unique_ptr<ObjectStore>> stores_;  // one per OST
  std::list<std::unique_ptr<Connection>> connections_;
  WorkerStatistics statistics_;
  uint64_t nextSerial_ = 1;
  Event executionOver_;  // pulses
  Event ticked_;         // pulses
  uint32_t tasks_ = 0;   // by start()
  bool accepting_ = false, stopping_ = false, cleaned_ = false;
};

class WorkerThread {
 public:
  // Returns when the worker is ready; throws what its construction throws.
  WorkerThread(const WorkerConfig& config, int listener, std::span<const std::unique_ptr<Ost>> osts,
               SessionTable& sessions, SessionVerifier& verifier);
  ~WorkerThread() { stop(); }
  WorkerThread(const WorkerThread&) = delete;

  // Any thread, before stop(): runs the call on the worker's thread.
  void post(std::function<void(DataWorker&)> call);
  // Any thread, before stop().
  const WorkerStatistics& statistics() const { return worker_->statistics(); }
  // Asks for the worker's orderly end; nothing may be posted any more.
  void beginStop();
  // Waits for it.
  void stop();

 private:
  DataWorker* worker_ = nullptr;
  bool stopping_ = false;
  std::thread thread_;
};

// A listening socket on the numeric address; port 0 picks a free one. Throws std::runtime_error.
struct Listener {
  int socket;
  uint16_t port;
};
Listener listenOn(const std::string& host, uint16_t port);

}  // namespace trainfs::oss
