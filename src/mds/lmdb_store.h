// The metadata store on LMDB: one environment in a directory, opened once (a lock file keeps a
// second process, or a second open in this one, out). Snapshots may be taken and dropped on any
// thread; the write transaction belongs to one. Commits wait for the disk, or, under a Journal,
// do not: then only what a checkpoint covers outlives a power cut. Facts about LMDB 0.9:
// docs/format-mdt.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "mds/store.h"
#include "trainfs/types.h"

namespace trainfs::mds {

inline constexpr uint64_t kTiB = 1024 * kGiB;

struct LmdbOptions {
  // The most that the store can grow to. Address space, which costs nothing until it is used: the
  // file grows with what is in it, and the map never has to.
  uint64_t mapBytes = kTiB;
  // Disk kept for the store ahead of its growth, see makeRoom().
  uint64_t reserveBytes = 64 * kMiB;
  uint32_t snapshotsMax = 512;     // at a time; more are refused with an exception
  uint32_t idleSnapshotsMax = 64;  // read transactions kept for reuse
  bool create =
      false;  // make it if it is not there: mkfs and tests. Otherwise it must be formatted
  bool syncedCommits = true;
  // A checkpoint's: the store goes back to it before it is opened. Empty: it is as it is.
  std::string meta = {};
};

// A snapshot that can be gone back to: while it lives, none of its pages is used again.
class Pin {
 public:
  virtual ~Pin() = default;
  virtual const View& view() const = 0;
  virtual const std::string& meta() const = 0;  // names its pages; LMDB's own bytes
};

class LmdbStore final : public Store {
 public:
  using Options = LmdbOptions;

  // Throws kj::Exception that names the directory: not there, not formatted, of a newer format, in
  // use, damaged.
  static std::unique_ptr<LmdbStore> open(const std::string& directory, const Options& options);
  ~LmdbStore() override;

  // Throws kj::Exception of type OVERLOADED when snapshotsMax are out.
  std::unique_ptr<View> snapshot() override;
  // put() throws kj::Exception, type OVERLOADED, when the map is full: drop the transaction, the
  // store goes on without it.
  std::unique_ptr<Txn> begin() override;

  // Keeps disk allocated ahead of the file's end, so that a commit needs none that others could
  // have taken, and says how much there is. kReserve: at most half of it, and neither the file
  // system nor the map has more. kNone: next to nothing. The writer's, between transactions.
  Room makeRoom() override;

  // Any thread, also beside the writer.
  std::unique_ptr<Pin> pin();
  void sync();  // everything committed so far is on disk. Throws kj::Exception: give up
  uint64_t fileBytes() const;

  struct Environment;  // LMDB's handles; lmdb_store.cc

 private:
  explicit LmdbStore(std::unique_ptr<Environment> environment);
  std::unique_ptr<Environment> environment_;
};

}  // namespace trainfs::mds
