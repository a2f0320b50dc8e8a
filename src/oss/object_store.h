// The objects of one OST that belong to one data worker: files of raw bytes under DIR/objects,
// their sums, and which of them are durably clean. Format and rules: docs/format-ost.md.
//
// Everything runs on the worker's reactor; an object's state has no mutex. Requests in flight for
// one object have the effect of some order of them; which one, when they touch the same blocks, is
// open. Errors are errnos for the client; EIO always comes with a log line that names the object.
// EAGAIN: the OST's lease ran out, or the registration is over in which the change was admitted,
// before it could begin; nothing was done.
#pragma once

#include <algorithm>
#include <bitset>
#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "oss/block_sums.h"
#include "oss/lease.h"
#include "oss/object_index.h"
#include "oss/range_lock.h"
#include "oss/reactor.h"
#include "trainfs/result.h"

namespace trainfs::oss {

struct ObjectStoreLimits {
  size_t descriptors = 16384;            // open object files
  size_t objects = 32768;                // states in memory; more only while they are in use
  size_t chunks = 16384;                 // of sums, 4 KiB each, likewise
  size_t dirtyObjects = 12288;           // then writes wait for the cleaner; below `descriptors`
  size_t failedObjects = 1024;           // whose flush failed; with more the OST gives up
  std::chrono::milliseconds idle{5000};  // unchanged for so long: cleaned in the background
};

class ObjectStore {
 public:
  // `name` is the OST's, for the log. What is passed by reference outlives the store. The store
  // may go only when nothing runs in it.
  ObjectStore(Reactor& reactor, ObjectIndex& index, const Lease& lease, std::string directory,
              std::string name, const ObjectStoreLimits& limits = {});
  ~ObjectStore();
  ObjectStore(const ObjectStore&) = delete;

  struct Slice {
    bool missing = false;             // no such object
    std::span<const std::byte> data;  // what was there of the range, within `room`
    std::vector<uint64_t> sums;       // of its pieces
  };
  // room: roomFor(range) bytes, which belong to the caller.
  // `verify`: also whole blocks, which are the reader's to verify otherwise.
  Task<Result<Slice>> read(ObjectId id, FileRange range, std::span<std::byte> room,
                           bool verify = false);
  static size_t roomFor(FileRange range);

  // Makes the object if need be. pieceSums: of the data's pieces, verified by the caller.
  Task<Status> write(ObjectId id, uint64_t offsetBytes, std::span<const std::byte> data,
                     const uint64_t* pieceSums, uint32_t registration);

  struct Figures {
    bool exists = false;
    uint64_t sizeBytes = 0, usedBytes = 0;
    Time mtime;
  };
  // Each tells whether the object exists; none makes one.
  using Existed = Result<bool>;
  Task<Existed> punch(ObjectId id, FileRange range, uint32_t registration);
  Task<Existed> truncate(ObjectId id, uint64_t sizeBytes, uint32_t registration);
  Task<Existed> sync(ObjectId id);
  Task<Result<Figures>> stat(ObjectId id);
  // Durably gone when it returns.
  Task<Status> destroy(ObjectId id);

  // Cleans what an earlier server left dirty, unless it is known here and so the business of
  // tick().
  Task<Status> cleanLeftover(ObjectId id);
  // To be called about once a second: cleans what was left alone for a while.
  void tick();
  // Cleans all that is dirty now. False: some could not be (logged).
  Task<bool> cleanAll();

  // See ObjectIndex.
  uint64_t verifier() const { return index_.verifier(); }
  size_t dirtyObjects() const { return dirtyCount_; }
  size_t failedObjects() const { return failedCount_; }
  size_t openDescriptors() const { return openFiles_.size(); }

 private:
  using Instant = std::chrono::steady_clock::time_point;

  // The outcome of something that several wait for.
  struct Round {
    explicit Round(Reactor& reactor) : done(reactor) {}
    Event done;
    Status status = Done{};
  };

  struct Object {
    Object(Reactor& reactor, ObjectId id) : id(id), locks(reactor), loading(reactor, 1) {}
    const ObjectId id;
    enum class Presence : uint8_t { kUnknown, kMissing, kHere } presence = Presence::kUnknown;
    bool dirty = false;          // the sums at rest are durably in doubt
    bool failed = false;         // dirty, and its disk may have lost writes: neither changed nor
                                 // synced any more
    bool hasRecord = false;      // in the index
    bool changedHere = false;    // since its last flush, by this process
    bool entryUnsynced = false;  // the file's name may not survive a power cut yet
    bool cleaning = false;       // by the background cleaner
    int fd = -1;
    uint64_t sizeBytes = 0;
    uint64_t version = 0;
    BlockSums sums;
    RangeLocks locks;
    Permits loading;  // who loads, opens or marks it
    std::shared_ptr<Round> nextSync;
    uint32_t pins = 0;
    size_t chunksCounted = 0;
    Instant changed;
    uint32_t cleaningFailures = 0;        // in a row
    Instant retryAt;                      // then
    std::list<Object*>* queue = nullptr;  // dirty_ or stuck_, when it is in one
    std::list<Object*>::iterator inStates, inOpenFiles, inQueue;  // the last two when fd/queue
    bool missing() const { return presence != Presence::kHere; }
  };

  // Keeps an object's state and descriptor.
  class Pin {
   public:
    Pin(ObjectStore& store, Object& object) : store_(store), object_(object) { ++object_.pins; }
    Pin(const Pin&) = delete;
    ~Pin() { store_.unpin(object_); }
    Object* operator->() const { return &object_; }
    Object& operator*() const { return object_; }

   private:
    ObjectStore& store_;
    Object& object_;
  };

  // -- object_store_state.cc: what is in memory and open --
  Object& stateOf(ObjectId id);
  void unpin(Object& object);
  void evict();
  void forget(Object& object);
  void setFile(Object& object, int fd);
  void closeFile(Object& object);
  Task<Status> ensureLoaded(Object& object);
  Task<Status> load(Object& object);
  Status loadRecord(Object& object, uint64_t fileBytes);
  Task<Status> create(Object& object);
  Status ensureChunks(Object& object, uint64_t firstBlock, uint64_t endBlock);
  std::string directoryPath(uint16_t directory) const;
  std::string pathOf(ObjectId id) const;
  static uint16_t directoryOf(ObjectId id);
  int makeDirectories(uint16_t directory) const;

  // -- object_store.cc: requests --
  Task<Status> writeHeld(Object& object, FileRange range, std::span<const std::byte> data,
                         const uint64_t* pieceSums, uint32_t registration);
  Task<Status> waitForRoom();
  Result<Slice> sumSlice(Object& object, FileRange wanted, FileRange read,
                         std::span<const std::byte> data, bool verify);
  Task<Result<size_t>> readFully(int fd, uint64_t offsetBytes, std::span<std::byte> room);
  Task<Status> writeFully(int fd, uint64_t offsetBytes, std::span<const std::byte> data);
  Task<Status> truncateHeld(Object& object, uint64_t sizeBytes, uint32_t registration);
  Task<Status> punchHeld(Object& object, FileRange range, uint32_t registration);

  // -- object_store_sync.cc: what is durable --
  // Before the first change to a clean state; also forgets the sums at rest of [dropFirst,
  // dropEnd).
  Task<Status> beginChange(Object& object, uint32_t registration, uint64_t dropFirst = 0,
                           uint64_t dropEnd = 0);
  Status mayChange(const Object& object, uint32_t registration);
  void setDirty(Object& object);
  void noteChanged(Object& object);
  void setClean(Object& object);
  void setFailed(Object& object);
  void putInto(std::list<Object*>* queue, Object& object);
  Task<Status> syncRound(Object& object);
  Task<Status> makeClean(Object& object);
  Task<Status> flush(Object& object);
  Task<Status> commit(IndexChange change);
  Task<Status> syncDirectory(uint16_t directory);
  Task<Status> syncDirectoryNow(uint16_t directory);
  Task<Status> syncPath(std::string path);
  void startCleaning();
  void retryStuck();
  Task<> cleanInBackground(Object& object);
  Task<> cleanOne(ObjectId id, Permits& permits);
  Task<Status> destroyHeld(Object& object);

  // -- object_store_sums.cc: sums made from files, and checked with them --
  Status findDoubtful(Object& object);
  template <typename Use>
  Task<Status> readPiece(Object& object, uint64_t offsetBytes, size_t bytes, Use use);
  Task<Status> sumPiece(Object& object, uint64_t block);
  Task<> sumAhead(Object& object);
  Task<Status> sumUnknown(Object& object);
  Status compare(const Object& object, uint64_t block, uint64_t found, uint64_t known) const;
  Task<Status> verifyBlock(Object& object, uint64_t block);
  // Before [offset, end) changes, growth included: of the blocks at both edges.
  Task<Status> verifyEdges(Object& object, uint64_t offsetBytes, uint64_t endBytes);

  struct DirectorySync {
    explicit DirectorySync(Reactor& reactor) : turn(reactor, 1) {}
    Permits turn;
    std::shared_ptr<Round> next;
  };
  static constexpr uint32_t kCleaningMax = 16;
  // An object that cannot be made clean is tried again after a second, then two, up to 64.
  static constexpr uint32_t kRetryDoublingsMax = 6;
  static constexpr uint32_t kScratchMax = 4;
  static constexpr size_t kPieceBlocks = 16;     // summed with one read
  static constexpr size_t kChunksKeptMax = 256;  // of one object: beyond, it is cleaned early

  Reactor& reactor_;
  ObjectIndex& index_;
  const Lease& lease_;
  ObjectIndex::Reader reader_;
  const std::string directory_, name_;
  const ObjectStoreLimits limits_;

  std::unordered_map<ObjectId, std::unique_ptr<Object>> objects_;
  std::list<Object*> states_;     // least recently used first
  std::list<Object*> openFiles_;  // likewise
  size_t chunksHeld_ = 0;

  std::list<Object*> dirty_;  // least recently changed first; not those being cleaned
  std::list<Object*> stuck_;  // dirty, too, but could not be made clean
  size_t dirtyCount_ = 0;     // with those being cleaned, without those that failed
  size_t failedCount_ = 0;
  uint32_t cleaning_ = 0;
  bool urgent_ = false;            // clean without waiting for idleness
  Status cleaningError_ = Done{};  // the last one
  Event cleaned_;                  // pulses when an object was, or could not be

  // A piece each, for re-reading what is to be summed. Who has it waits for the disk only: see
  // BufferPool.
  Permits scratchPermits_;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;

  std::map<uint16_t, DirectorySync> directorySyncs_;
  std::bitset<65536> durableDirectories_;
};

}  // namespace trainfs::oss
