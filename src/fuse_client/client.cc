#include "fuse_client/client.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <iterator>

namespace trainfs::client {

namespace {

constexpr std::chrono::seconds kReportEvery{5};
constexpr size_t kReportsAtOnce = 1024;
constexpr size_t kHeaderBytes = 4096;  // room that libfuse wants before the data of a write

template <typename Options>
Options counted(Options options, Statistics& statistics) {
  options.statistics = &statistics;
  return options;
}

}  // namespace

Client::Client(const MdsClientOptions& mds, const DataClientOptions& data)
    : invalidator_(inodes_),
      buffers_(std::make_shared<BufferPool>(kRequestBytesMax + kHeaderBytes)),
      interrupts_(std::make_unique<InterruptWatch>(inFlight_)),
      data_(DataClient::create(counted(data, statistics_))),
      mds_(MdsClient::create(counted(mds, statistics_), *this)),
      appendTurns_(*mds_, coherence_),
      files_(*mds_, *data_, inodes_, coherence_, appendTurns_,
             [this](InodeId inode, std::function<void()> done) {
               invalidator_.invalidateAttributes(inode, std::move(done));
             }),
      locks_(*mds_, heldLocks_, statistics_, [this](InodeId inode, std::function<void()> next) {
        afterAbandoned(inode, std::move(next));
      }) {
  data_->onStaleSession([this] { mds_->checkSession(); });
  reporter_ = std::thread([this] { reportNowAndThen(); });
}

Client::~Client() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  reporter_.join();
  // What one of them still answers may ask the other, so both objects stay until both have stopped.
  mds_->stop();
  data_.reset();
  interrupts_.reset();
}

std::string Client::chooseRoot(const std::vector<std::string>& path,
                               std::chrono::seconds patience) {
  auto deadline = std::chrono::steady_clock::now() + patience;
  InodeId directory = kRootInode;
  std::string so;
  for (auto& name : path) {
    so += "/" + name;
    auto answer = std::make_shared<std::promise<Result<Node>>>();
    auto answered = answer->get_future();
    mds_->lookup(directory, name, [answer](Result<Node> node) { answer->set_value(node); });
    if (answered.wait_until(deadline) != std::future_status::ready)
      return so + ": no MDS answers within " + std::to_string(patience.count()) + " seconds";
    auto node = answered.get();
    if (!node) return so + ": " + std::strerror(node.error().code());
    if (!S_ISDIR(node->attributes.mode)) return so + ": " + std::strerror(ENOTDIR);
    directory = node->attributes.inode;
  }
  inodes_.setRoot(directory);
  return {};
}

// ---- what the MDS says ----

void Client::mapChanged(ClusterMap map) {
  data_->setMap(std::move(map));
}

void Client::sessionOpened(SessionId session, uint32_t epoch, bool fresh, bool mayCache,
                           std::vector<InodeId> removed) {
  if (!removed.empty())
    spdlog::error("{} open files were removed while this mount had no session", removed.size());
  if (fresh) {
    data_->setRemoved(std::move(removed));
    appendTurns_.lose();
  }
  data_->setSession(session, epoch);
  bool first = !std::exchange(hadSession_, true);
  bool before = std::exchange(granted_, mayCache);
  bool lapsed = std::exchange(lapsed_, false);
  if (first) {
    if (mayCache) coherence_.allow(coherence_.version());  // nothing is cached yet
  } else if (fresh) {
    coherence_.forbid();
    loseLocks();
    files_.loseUnreported();
    inodes_.forgetAll();
    if (mayCache)
      allowCaching();
    else
      invalidator_.invalidateAll([] {});
  } else if (mayCache && (lapsed || !before)) {
    allowCaching();
  } else if (!mayCache && before) {
    recalled([] {});
  }
}

// Others may have had them since, and have read or written what they protected: nobody who had one
// gets another before he has let go of it, and his next fsync or close says that something is
// wrong.
void Client::loseLocks() {
  constexpr size_t kLinesMax = 16;
  size_t lost = 0;
  for (auto id : heldLocks_.lose()) {
    if (auto inode = inodes_.find(id)) {
      std::lock_guard lock(inode->mutex);
      inode->losses.add();
    }
    if (++lost <= kLinesMax)
      spdlog::error("locks of inode {} were lost with the session", id.value);
  }
  if (lost > kLinesMax) spdlog::error("and locks of {} more", lost - kLinesMax);
}

void Client::afterAbandoned(InodeId id, std::function<void()> next) {
  abandonedChanges_.afterAll([this, id, next = std::move(next)] {
    if (auto inode = inodes_.find(id))
      inode->access->shared([next](OrderedAccess::Pass) { next(); });
    else
      next();
  });
}

void Client::recalled(std::function<void()> done) {
  granted_ = false;
  ++forgetting_;
  coherence_.forbid();
  inodes_.forgetAll();
  auto forgotten = [this, done = std::move(done)] {
    --forgetting_;
    done();
  };
  appendTurns_.tell([this, forgotten = std::move(forgotten)] {
    reportAll(MdsClient::Urgency::kUrgent,
              [this, forgotten] { invalidator_.invalidateAll(forgotten); });
  });
}

std::vector<FileLock> Client::heldLocks() {
  auto locks = heldLocks_.all();
  std::ranges::copy(appendTurns_.claims(), std::back_inserter(locks));
  return locks;
}

void Client::mayCache() {
  granted_ = true;
  allowCaching();
}

// The MDS may give to others now what this client was alone with. If it has not, as its next answer
// says, everything is as before.
void Client::lapsed() {
  lapsed_ = true;
  if (!granted_) return;
  spdlog::warn("no word of the MDS for most of a term: nothing is cached until it answers");
  coherence_.forbid();
  inodes_.forgetAll();
  invalidator_.invalidateAll([] {});
}

void Client::trusted(BootClock::time_point until) {
  coherence_.trustUntil(until);
  if (std::exchange(lapsed_, false) && granted_) allowCaching();
}

// While others could change things, cached handles of old may have filled the page cache again:
// begin anew.
void Client::allowCaching() {
  auto version = coherence_.version();
  inodes_.forgetAll();
  invalidator_.invalidateAll([this, version] { coherence_.allow(version); });
}

// ---- reports ----

void Client::reportAll(MdsClient::Urgency urgency, std::function<void()> done) {
  reportSome(std::make_shared<std::vector<InodePtr>>(inodes_.unreported()), urgency,
             std::move(done));
}

// The others after these, so that callers' own changes find their turn between.
void Client::reportSome(std::shared_ptr<std::vector<InodePtr>> left, MdsClient::Urgency urgency,
                        std::function<void()> done) {
  if (left->empty()) return done();
  auto first = left->end() - static_cast<ptrdiff_t>(std::min(left->size(), kReportsAtOnce));
  std::vector<InodePtr> some(first, left->end());
  left->erase(first, left->end());
  auto afterLast =
      std::shared_ptr<void>(nullptr, [=, this](void*) { reportSome(left, urgency, done); });
  for (auto& inode : some) {
    auto reported = [afterLast](Status) {};
    if (urgency == MdsClient::Urgency::kUrgent)
      files_.reportUrgently(inode, reported);
    else
      files_.report(inode, reported);
  }
}

void Client::reportNowAndThen() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, kReportEvery, [&] { return stopping_; });
    if (stopping_) return;
    lock.unlock();
    for (auto& inode : inodes_.unreported()) files_.reportInPassing(inode);
    inodes_.dropIdle();
    lock.lock();
  }
}

bool Client::finish(std::chrono::milliseconds patience) {
  invalidator_.setSession(nullptr);
  // Last reports may still wait for their turn: those that are on their way are seen as unreported,
  // too. Urgently: an fsync of a caller that is gone may wait for an OST that is away.
  auto deadline = std::chrono::steady_clock::now() + patience;
  for (auto left = inodes_.unreported(); !left.empty(); left = inodes_.unreported()) {
    auto finished = std::make_shared<bool>(false);
    auto gate = std::make_shared<std::pair<std::mutex, std::condition_variable>>();
    reportAll(MdsClient::Urgency::kUrgent, [finished, gate] {
      std::lock_guard lock(gate->first);
      *finished = true;
      gate->second.notify_all();
    });
    std::unique_lock lock(gate->first);
    bool inTime = gate->second.wait_until(lock, deadline, [&] { return *finished; });
    if (!inTime || std::chrono::steady_clock::now() >= deadline) {
      spdlog::error(
          "the sizes of {} files could not be reported, for no MDS took them: it will ask the OSTs "
          "for them when it gives this mount up",
          left.size());
      return false;
    }
  }
  auto rest = deadline - std::chrono::steady_clock::now();
  bool ended = mds_->end(std::max(std::chrono::duration_cast<std::chrono::milliseconds>(rest),
                                  std::chrono::milliseconds(1)));
  if (!ended)
    spdlog::error(
        "the session could not be ended, for no MDS answers: files stay marked as open until it "
        "gives this mount up");
  return ended;
}

}  // namespace trainfs::client
