// The metadata store on LMDB: one environment in a directory, opened once (a lock file keeps a
// second process, or a second open in this one, out). Commits are synchronous. Snapshots may be
// taken and dropped on any thread; the write transaction belongs to one. Facts about LMDB 0.9:
// docs/format-mdt.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "mds/store.h"
#include "trainfs/types.h"

namespace trainfs::mds {

struct LmdbOptions {
  // Address space; the file grows with what is in it. A store that has reached this is full.
  uint64_t mapBytes = 64 * kGiB;
  uint32_t snapshotsMax = 512;     // at a time; more are refused with an exception
  uint32_t idleSnapshotsMax = 64;  // read transactions kept for reuse
  bool create =
      false;  // make it if it is not there: mkfs and tests. Otherwise it must be formatted
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

  struct Environment;  // LMDB's handles; lmdb_store.cc

 private:
  explicit LmdbStore(std::unique_ptr<Environment> environment);
  std::unique_ptr<Environment> environment_;
};

}  // namespace trainfs::mds
