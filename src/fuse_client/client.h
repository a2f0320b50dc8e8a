// One mount: the parts, and what happens between them when the MDS calls. Made by main; outlives
// the FUSE session.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "fuse_client/abandoned_changes.h"
#include "fuse_client/buffer_pool.h"
#include "fuse_client/coherence.h"
#include "fuse_client/data_client.h"
#include "fuse_client/file_io.h"
#include "fuse_client/file_locks.h"
#include "fuse_client/held_locks.h"
#include "fuse_client/in_flight.h"
#include "fuse_client/inodes.h"
#include "fuse_client/interrupt_watch.h"
#include "fuse_client/invalidator.h"
#include "fuse_client/kernel_features.h"
#include "fuse_client/mds_client.h"
#include "fuse_client/mount_control.h"
#include "fuse_client/mount_options.h"
#include "fuse_client/places.h"
#include "fuse_client/statistics.h"

namespace trainfs::client {

inline constexpr uint32_t kRequestBytesMax = 1 << 20;  // data of one read or write request
// Reads and writes under way, each with a buffer. A thread has one at a time, so this many threads
// may wait for an OST that is away before others are refused.
inline constexpr uint32_t kTransfersMax = 2048;

class Client final : private MdsEvents {
 public:
  Client(const MdsClientOptions& mds, const DataClientOptions& data);
  ~Client() override;

  MdsClient& mds() { return *mds_; }
  DataClient& data() { return *data_; }
  Inodes& inodes() { return inodes_; }
  Coherence& coherence() { return coherence_; }
  FileIo& files() { return files_; }
  FileLocks& locks() { return locks_; }
  BufferPool& buffers() { return *buffers_; }
  Places& transfers() { return *transfers_; }
  InFlight& inFlight() { return inFlight_; }
  AbandonedChanges& abandonedChanges() { return abandonedChanges_; }
  InterruptWatch& interrupts() { return *interrupts_; }
  Invalidator& invalidator() { return invalidator_; }

  KernelFeatures& kernelFeatures() { return kernelFeatures_; }
  Statistics& statistics() { return statistics_; }

  // Before the kernel asks for anything.
  void setLocking(Locking locking) { locking_ = locking; }
  Locking locking() const { return locking_; }

  // Null: there is none. Before the kernel asks for anything.
  void setControl(MountControl* control) { control_ = control; }
  MountControl* control() { return control_; }

  // Makes a directory the root of the mount, before there is one: `path` is the names that lead to
  // it. Returns what is wrong, or an empty string.
  std::string chooseRoot(const std::vector<std::string>& path, std::chrono::seconds patience);

  // How long the kernel may keep a name, while caching is allowed.
  double nameTimeout() const { return invalidator_.hasEpochs() ? Coherence::kForeverSeconds : 0.0; }

  // The mount is gone: reports what is left and ends the session. False: not within `patience`.
  bool finish(std::chrono::milliseconds patience);

 private:
  void sessionOpened(SessionId session, uint32_t epoch, bool fresh, bool mayCache,
                     std::vector<InodeId> removed) override;
  void mapChanged(ClusterMap map) override;
  void recalled(std::function<void()> done) override;
  void mayCache() override;
  void trusted(BootClock::time_point until) override;
  void lapsed() override;
  std::vector<OpenFile> openFiles(Told told) override { return inodes_.openFiles(told); }
  std::vector<FileLock> heldLocks() override;
  bool mayBeCaching() override { return granted_ || forgetting_.load() != 0; }

  void loseLocks();
  // Runs `next` after what callers who were killed have left under way, of this file or of names.
  void afterAbandoned(InodeId id, std::function<void()> next);
  void allowCaching();
  void reportAll(MdsClient::Urgency urgency, std::function<void()> done);
  void reportSome(std::shared_ptr<std::vector<InodePtr>> left, MdsClient::Urgency urgency,
                  std::function<void()> done);
  void reportNowAndThen();

  // Of the MDS thread; here because that may run before the constructor is done.
  bool hadSession_ = false;
  bool granted_ = false;                 // the MDS's last word: this client may cache
  bool lapsed_ = false;                  // and it has not said so for too long
  std::atomic<uint32_t> forgetting_{0};  // recalls that are not finished; any thread

  Statistics statistics_;
  Inodes inodes_;
  HeldLocks heldLocks_;
  Coherence coherence_;
  Invalidator invalidator_;
  std::shared_ptr<BufferPool> buffers_;
  const std::shared_ptr<Places> transfers_ = std::make_shared<Places>(kTransfersMax);
  InFlight inFlight_;
  AbandonedChanges abandonedChanges_;
  std::unique_ptr<InterruptWatch> interrupts_;
  std::unique_ptr<DataClient> data_;
  std::unique_ptr<MdsClient> mds_;
  AppendTurns appendTurns_;
  FileIo files_;
  FileLocks locks_;
  Locking locking_ = Locking::kCluster;
  KernelFeatures kernelFeatures_;
  MountControl* control_ = nullptr;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread reporter_;
};

}  // namespace trainfs::client
