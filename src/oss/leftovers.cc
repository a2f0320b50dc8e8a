#include "oss/leftovers.h"

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>

#include "trainfs/bulk.h"
#include "trainfs/logging.h"
#include "trainfs/object_id.h"

namespace trainfs::oss {

namespace {

namespace fs = std::filesystem;

// What the worker says of an object; outlives the search, which may have gone meanwhile.
struct Outcome {
  std::mutex mutex;
  std::condition_variable_any told;
  std::optional<bool> clean;
};

Task<> cleanOn(DataWorker& worker, uint32_t ost, ObjectId object,
               std::shared_ptr<Outcome> outcome) {
  auto status = co_await worker.store(ost).cleanLeftover(object);
  std::lock_guard lock(outcome->mutex);
  outcome->clean = status.ok();
  outcome->told.notify_one();
}

void rest(const std::stop_token& stop, std::chrono::steady_clock::duration length) {
  std::mutex mutex;
  std::condition_variable_any asked;
  std::unique_lock lock(mutex);
  asked.wait_for(lock, stop, length, [] { return false; });
}

}  // namespace

Leftovers::Leftovers(Ost& ost, Workers workers)
    : ost_(ost), workers_(workers), thread_([this](const std::stop_token& stop) {
        try {
          run(stop);
        } catch (const std::exception& exception) {
          spdlog::error("{}: looking for objects that are not clean: {}", ost_.name,
                        exception.what());
        }
      }) {}

// Calls `act` for each object that the index does not call clean. Returns how many objects and
// directories could not be looked at.
uint64_t Leftovers::forEach(const std::stop_token& stop,
                            const std::function<void(const ObjectId&)>& act) {
  ObjectIndex::Reader reader(*ost_.index);
  uint64_t failures = 0;
  std::error_code error;
  fs::recursive_directory_iterator at(ost_.directory + "/objects", error), end;
  while (!error && at != end && !stop.stop_requested()) {
    if (at.depth() == 2) {
      at.disable_recursion_pending();
      if (auto object = parseObjectIdHex(at->path().filename().string())) {
        auto found = reader.find(*object);
        bool dirty = found ? found->record.dirty : found.error() == Errno(ENOENT);
        if (dirty) act(*object);
        if (!found && !dirty) ++failures;  // logged by the reader
      }
    }
    at.increment(error);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    spdlog::error("{}: looking for objects below {}/objects: {}", ost_.name, ost_.directory,
                  error.message());
    ++failures;
  }
  return failures;
}

bool Leftovers::clean(const std::stop_token& stop, const ObjectId& object) {
  auto outcome = std::make_shared<Outcome>();
  uint32_t chain = ost_.target.index;
  workers_[workerOf(object, workers_.size())]->post([=](DataWorker& worker) {
    worker.start(cleanOn(worker, *worker.findOst(chain), object, outcome));
  });
  std::unique_lock lock(outcome->mutex);
  outcome->told.wait(lock, stop, [&] { return outcome->clean.has_value(); });
  return outcome->clean.value_or(false);
}

void Leftovers::run(const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  forEach(stop, [&](const ObjectId&) { ++ost_.leftovers; });
  spdlog::info("{}: its last server did not stop in order; making {} objects clean", ost_.name,
               ost_.leftovers.load());
  uint64_t cleaned = 0, failures = 0;
  failures += forEach(stop, [&](const ObjectId& object) {
    auto begun = Clock::now();
    bool isClean = clean(stop, object);
    ++(isClean ? cleaned : failures);
    if (isClean && ost_.leftovers > 0) --ost_.leftovers;  // new ones were not counted
    rest(stop, std::min<Clock::duration>(Clock::now() - begun, kRestMax));
  });
  if (stop.stop_requested()) return;
  ost_.leftovers = failures;
  if (failures == 0) ost_.unclean = false;
  spdlog::log(failures == 0 ? spdlog::level::info : spdlog::level::err,
              "{}: {} objects that its last server left were made clean, {} could not be",
              ost_.name, cleaned, failures);
}

}  // namespace trainfs::oss
