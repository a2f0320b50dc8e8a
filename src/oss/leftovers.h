// After an OSS that did not stop in order: finds the objects that it left dirty, which would wait
// for somebody to touch them, and has them made clean. Until then an OST's next stop is no orderly
// one either, and damage of such an object cannot be told from a torn write.
//
// One thread per OST, made and owned by main. It walks the directories of objects twice, to count
// and to clean; the owning data worker cleans, one object at a time, and then the disk has as long
// a rest. What was cleaned stays so: after an interruption the next start soon comes to the others.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "oss/data_worker.h"

namespace trainfs::oss {

class Leftovers {
 public:
  using Workers = std::span<const std::unique_ptr<WorkerThread>>;
  // Sets ost.leftovers, and clears ost.unclean when nothing is left. Both references outlive it.
  Leftovers(Ost& ost, Workers workers);
  // Asks it to end, and waits; an object that is being cleaned is the worker's business then.
  ~Leftovers() = default;
  Leftovers(const Leftovers&) = delete;

 private:
  static constexpr std::chrono::seconds kRestMax{1};

  void run(const std::stop_token& stop);
  uint64_t forEach(const std::stop_token& stop, const std::function<void(const ObjectId&)>& act);
  bool clean(const std::stop_token& stop, const ObjectId& object);

  Ost& ost_;
  const Workers workers_;
  std::jthread thread_;  // last: it uses what is above
};

}  // namespace trainfs::oss
