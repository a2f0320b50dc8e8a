// What an OST knows about its objects: size, version, whether the sums are to be trusted, and the
// sums. An LMDB environment in DIR/index; format: docs/format-ost.md. The only file with <lmdb.h>.
//
// Changes go to one writer thread that commits all that wait in one transaction, synchronously.
// Each data worker reads through a Reader of its own.
#pragma once

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
  };
  Kind kind = Kind::kMarkDirty;
  ObjectId object;
  ObjectRecord record;
  // kMarkDirty, kClean: sums of chunks in [dropFirst, dropEnd) are forgotten; before `chunks`
  // apply.
  uint64_t dropFirst = 0, dropEnd = 0;
  std::map<uint64_t, std::vector<uint64_t>> chunks;
};

class ObjectIndex {
 public:
  // Throws std::runtime_error that says what is wrong, and where.
  explicit ObjectIndex(const std::string& directory);
  ~ObjectIndex();  // finishes what waits
  ObjectIndex(const ObjectIndex&) = delete;

  // Any thread. `done` runs on the writer thread when the change is durable (0), or with the errno
  // of what went wrong: then nothing was changed.
  using Done = std::function<void(int error)>;
  void change(IndexChange change, Done done);

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
  static constexpr size_t kBatchMax = 1024;
  static constexpr uint64_t kMapBytes = 64 * kGiB;  // address space, not memory or disk

  void open();
  void writeLoop();
  int commit(const std::vector<Waiting>& batch);
  int apply(MDB_txn* transaction, const IndexChange& change);
  int drop(MDB_txn* transaction, const IndexChange& change);
  int errnoOf(int code, const char* what) const;

  const std::string directory_;
  MDB_env* environment_ = nullptr;
  unsigned table_ = 0;
  std::mutex mutex_;  // guards waiting_, stopping_
  std::condition_variable wake_;
  std::vector<Waiting> waiting_;
  bool stopping_ = false;
  std::thread writer_;
};

}  // namespace trainfs::oss
