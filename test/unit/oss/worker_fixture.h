// Data workers behind real ports, with a fake MDS to ask about sessions.
#pragma once

#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "oss/data_worker.h"
#include "store_fixture.h"

namespace trainfs::oss {

class FakeVerifier final : public SessionVerifier {
 public:
  void check(uint32_t, SessionId session, uint32_t epoch,
             std::function<void(Verdict)> done) override {
    Verdict verdict = Verdict::kValid;
    {
      std::lock_guard lock(mutex_);
      ++asked_;
      if (unknown_) verdict = Verdict::kUnknown;
      if (evicted_.contains(session.value) || epoch == 0) verdict = Verdict::kInvalid;
    }
    done(verdict);
  }
  void evict(uint64_t session) {
    std::lock_guard lock(mutex_);
    evicted_.insert(session);
  }
  void setUnknown(bool unknown) {
    std::lock_guard lock(mutex_);
    unknown_ = unknown;
  }
  int asked() {
    std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  std::mutex mutex_;
  std::set<uint64_t> evicted_;
  bool unknown_ = false;
  int asked_ = 0;
};

inline Lease::Instant inAnHour() {
  return std::chrono::steady_clock::now() + std::chrono::hours(1);
}

class WorkerFixture {
 public:
  explicit WorkerFixture(uint32_t workers = 1) {
    auto ost = std::make_unique<Ost>();
    ost->target.index = 0;
    ost->name = "test-OST0000";
    ost->directory = directory_.path();
    ost->index = std::make_unique<ObjectIndex>(directory_ / "index", directory_ / "note");
    ost->chainVersion = 1;
    ost->lease.begin(inAnHour());
    osts_.push_back(std::move(ost));
    for (uint32_t i = 0; i < workers; ++i) {
      auto listener = listenOn("127.0.0.1", 0);
      ports_.push_back(listener.port);
      workers_.push_back(std::make_unique<WorkerThread>(WorkerConfig{.number = i, .count = workers},
                                                        listener.socket, osts_, sessions_,
                                                        verifier_));
    }
  }

  uint16_t port(uint32_t worker = 0) const { return ports_[worker]; }
  Ost& ost() { return *osts_[0]; }
  FakeVerifier& verifier() { return verifier_; }
  SessionTable& sessions() { return sessions_; }
  std::span<const std::unique_ptr<WorkerThread>> workers() const { return workers_; }

  void fence(SessionId session, uint32_t epoch) {
    sessions_.fence(session, epoch);
    std::promise<void> done;
    workers_[0]->post([&](DataWorker& worker) {
      auto run = [](DataWorker& worker, SessionId session, uint32_t epoch,
                    std::promise<void>& done) -> Task<> {
        co_await worker.fence(session, epoch);
        done.set_value();
      };
      worker.start(run(worker, session, epoch, done));
    });
    done.get_future().get();
  }
  void stop() { workers_.clear(); }

  // As of the last tick of the worker.
  uint64_t connections() { return workers_[0]->statistics().connections.value(); }
  uint64_t executing() { return workers_[0]->statistics().executing.value(); }

 private:
  test::TempDir directory_;
  std::vector<std::unique_ptr<Ost>> osts_;
  SessionTable sessions_;
  FakeVerifier verifier_;
  std::vector<uint16_t> ports_;
  std::vector<std::unique_ptr<WorkerThread>> workers_;
};

inline Bytes patternOf(size_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  return randomBytes(random, bytes);
}

}  // namespace trainfs::oss
