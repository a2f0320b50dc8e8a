// What an OST knows about its objects: size, version, whether the sums are to be trusted, and the
// sums; and what it can promise about writes that were not synced. An LMDB environment in
// DIR/index; format: docs/format-ost.md. The only file with <lmdb.h>.
//
// Changes go to one writer thread that commits all that wait in one transaction, synchronously, and
// in the order of their keys: changes of different objects commute, and LMDB takes neighbours
// cheaply. Those of one object stay in the order in which they came, and what is of no object stays
// between what came before and after it.
// Each data worker reads through a Reader of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "oss/object_record.h"
#include "oss/verifier_note.h"
#include "trainfs/result.h"
#include "trainfs/types.h"

struct MDB_env;
struct MDB_txn;

namespace trainfs::oss {

struct IndexChange {
  enum class Kind : uint8_t {
    kMarkDirty,  // the record, if there is one, says that the sums are in doubt
    kClean,      // `record` replaces the old one
    kRemove,     // nothing is left
    // Of no object:
    kDisown,       // the next server takes another verifier
    kOrderlyStop,  // nothing is dirty
    kStart,        // `start` replaces the old one
  };
  Kind kind = Kind::kMarkDirty;
  ObjectId object;
  ObjectRecord record;
  StoredStart start;
  // kMarkDirty, kClean: sums of chunks in [dropFirst, dropEnd) are forgotten; before `chunks`
  // apply.
  uint64_t dropFirst = 0, dropEnd = 0;
  std::map<uint64_t, std::vector<uint64_t>> chunks;
};

// Names this run of the machine; another after each start of it.
uint64_t bootOfMachine();

class ObjectIndex {
 public:
  // `note`: the file of a VerifierNote. Throws std::runtime_error that says what is wrong, and
  // where.
  ObjectIndex(const std::string& directory, const std::string& note,
              uint64_t boot = bootOfMachine());
  ~ObjectIndex();  // finishes what waits
  ObjectIndex(const ObjectIndex&) = delete;

  // Any thread. `done` runs on the writer thread when the change is durable (0), or with the errno
  // of what went wrong: then nothing was changed.
  using Done = std::function<void(int error)>;
  void change(IndexChange change, Done done);

  // Stands for the memory that unsynced writes are in. A write that was made under another one may
  // be lost. It outlives this process, as the page cache does, but the machine's run only if it was
  // stopped in order. Not 0.
  uint64_t verifier() const { return verifier_; }
  // Some writes were lost: they are known to this process, but must not look unharmed to the next.
  void disownUnsynced();
  // Any thread. What the file system lost belongs to no single object: nothing can be promised any
  // more until the next start.
  void giveUp() { givenUp_ = true; }
  bool givenUp() const { return givenUp_; }

  // The last server did not stop in order: it may have left objects that are not clean.
  bool foundUnclean() const { return foundUnclean_; }
  // Before an orderly end with nothing dirty left.
  void noteOrderlyStop();

  // The start that the MDS is to accept. If accepted() does not hold after it has, that was one of
  // which an earlier server has not learned the fate, and the next has to be accepted, too, before
  // anything is served.
  StoredStart start();
  bool accepted() { return start().accepted == start().current; }
  // The MDS has accepted start().current.
  void noteAccepted(Done done);

  using Found = StoredRecord;

  // Belongs to one thread; goes before the index.
  class Reader {
   public:
    explicit Reader(ObjectIndex& index);
    ~Reader();
    Reader(const Reader&) = delete;
    // ENOENT: no record. EIO: not readable, logged.
    Result<Found> find(const ObjectId& object);
    // Sums of a chunk other than the first; none: zero blocks.
    Result<std::vector<uint64_t>> sums(const ObjectId& object, uint64_t chunk);

   private:
    Result<std::string> get(const std::string& key);
    ObjectIndex& index_;
    MDB_txn* transaction_ = nullptr;
  };

 private:
  struct Waiting {
    IndexChange change;
    Done done;
  };
  static void sortByKey(std::vector<Waiting>& batch);
  static constexpr size_t kBatchMax = 1024;
  static constexpr uint64_t kMapBytes = 64 * kGiB;  // address space, not memory or disk
  // Kept free for the index, so that a full disk can still be told what was deleted.
  static constexpr uint64_t kReserveBytes = 8 * kMiB;

  void open(uint64_t boot);
  void checkFormat(MDB_txn* transaction);
  StoredRun loadRun(MDB_txn* transaction);
  int storeRun(MDB_txn* transaction, const StoredRun& run);
  int applyRun(MDB_txn* transaction, const IndexChange& change);
  void loadStart(MDB_txn* transaction);
  int storeStart(MDB_txn* transaction, const StoredStart& start);
  void keepReserve();
  void writeLoop();
  void write(std::vector<Waiting> batch);
  // `culprit`: the one that could not be applied, if it was that.
  int commit(std::vector<Waiting>& batch, std::vector<Waiting>::iterator& culprit);
  int apply(MDB_txn* transaction, const IndexChange& change);
  int drop(MDB_txn* transaction, const IndexChange& change);
  int errnoOf(int code, const char* what) const;

  const std::string directory_;
  const VerifierNote note_;
  MDB_env* environment_ = nullptr;
  unsigned table_ = 0;
  uint64_t verifier_ = 0;
  bool foundUnclean_ = false;
  std::atomic<bool> givenUp_{false}, disown_{false};
  uint64_t reservedEnd_ = 0;  // of the index's file
  std::mutex mutex_;          // guards what follows, but for wake_ and writer_
  std::condition_variable wake_;
  std::vector<Waiting> waiting_;
  bool stopping_ = false;
  StoredStart start_;
  bool startIsLeftover_ = false;  // of an earlier server
  std::thread writer_;
};

}  // namespace trainfs::oss
