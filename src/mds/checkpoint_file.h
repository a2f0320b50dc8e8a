// The file that says from where an MDT is recovered: a meta page of LMDB whose pages are all on
// disk, and the index in the log of the last command in it. Two places, written in turns: a write
// that is lost leaves the one before. A damaged one is refused rather than passed over, for the
// pages of the one before have been used again. Used by one thread at a time. docs/format-mdt.md.
#pragma once

#include <optional>
#include <string>

#include "trainfs/types.h"

namespace trainfs::mds {

struct Checkpoint {
  uint64_t appliedIndex = 0;
  bool clean = false;  // the server was stopped in order: nothing was changed afterwards
  std::string meta;    // LmdbStore's
};

class CheckpointFile {
 public:
  explicit CheckpointFile(std::string directory);
  ~CheckpointFile();
  CheckpointFile(const CheckpointFile&) = delete;
  CheckpointFile& operator=(const CheckpointFile&) = delete;

  // The last one that was saved, durable now; nothing: there has been none. Throws kj::Exception
  // when the file is damaged, or of a newer version.
  std::optional<Checkpoint> load();
  // Durable when it returns. Throws kj::Exception when the disk refuses.
  void save(const Checkpoint& checkpoint);

 private:
  void create(const std::string& first);

  const std::string directory_, path_;
  int fd_ = -1;
  uint64_t sequence_ = 0;  // of the last one
};

}  // namespace trainfs::mds
