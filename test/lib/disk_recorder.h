// A disk that forgets. While a DiskRecorder lives, every change that this process makes to files
// below one directory is noted, and replay() builds in another directory what a disk may hold if
// the power had failed after the first n changes.
//
// Changes are noticed by interposing libc's calls (disk_interposer.cc, which must be linked into
// the test program itself: libraries such as liblmdb call them through the dynamic linker). Not
// noticed: files made by stdio and iostreams, whose calls stay within libc (a later write to one
// ends the process with a message), shared writable mappings (LMDB has one only for its lock file),
// and io_uring, whose user reports what it does by the functions below.
//
// What a cut leaves:
//  * data that a completed fsync, fdatasync or O_DSYNC write covers is there;
//  * every other write is kept, dropped, or torn at sectors of 512 bytes, each by itself;
//  * sizes change in order: of the changes not covered by a sync, some first ones are there;
//  * names (files made, removed, renamed; directories made) change in order, over all directories,
//    as in the journal of ext4: a completed fsync of a directory covers its names and what came
//    before; of the others some first ones are there. Syncing a file does not save its name, which
//    is harsher than ext4.
//
// kill() ends a life of the process without a cut: the next one finds all changes in the page
// cache, and what of them was not synced may still be lost by a later cut.
// One recorder at a time; its functions may be called on any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lib/seed.h"

namespace trainfs::test {

class DiskRecorder {
 public:
  // What is below the directory now counts as durable.
  explicit DiskRecorder(const std::string& directory);
  ~DiskRecorder();
  DiskRecorder(const DiskRecorder&) = delete;
  DiskRecorder& operator=(const DiskRecorder&) = delete;

  // Changes and completed syncs so far. What was promised when this was n must be there after a cut
  // at n.
  size_t operations() const;

  // Fills `into`, an empty directory, with what may be left when the power fails after n
  // operations; which of the possible outcomes, `random` says.
  void replay(size_t n, Random& random, const std::string& into) const;

  // The process was killed after n operations, which are all there are then. Fills `into`, an empty
  // directory, with what the page cache holds, and watches that directory from now on. Nobody may
  // change files of the old one any more.
  void kill(size_t n, const std::string& into);

  // For users of io_uring, which passes by libc: called when the change is complete and before
  // anyone is told of it. Descriptors of files elsewhere are ignored.
  void wrote(int fd, uint64_t offsetBytes, std::string_view bytes);
  void resized(int fd, uint64_t sizeBytes);
  void allocated(int fd, int mode, uint64_t offsetBytes, uint64_t lengthBytes);  // fallocate(2)
  // A sync covers what was reported before it was submitted:
  //   auto sync = recorder.syncSubmitted(fd);  ... completes with success ...
  //   recorder.syncCompleted(sync);
  struct SubmittedSync {
    size_t file = 0, covers = 0;
    bool known = false;
  };
  SubmittedSync syncSubmitted(int fd);
  void syncCompleted(const SubmittedSync& sync);

  // ---- for disk_interposer.cc ----

  static DiskRecorder* active();

  using FileId = size_t;
  struct Place {  // of a name
    FileId directory = 0;
    std::string name;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  // Where a path leads, if to a place below the directory.
  bool findPlace(int directoryFd, const char* path, Place& place) const;
  bool exists(const Place& place) const;
  void made(const Place& place, int directoryFd, const char* path);
  void removed(const Place& place);
  void renamed(const Place& from, const Place& to, bool exchange);
  void linked(const Place& from, const Place& to);
  // `durable`: through O_DSYNC, O_SYNC or RWF_DSYNC.
  void wrote(int fd, uint64_t offsetBytes, std::string_view bytes, bool durable);

 private:
  static constexpr FileId kNoFile = ~FileId{0};
  static constexpr FileId kRoot = 0;
  using Identity = std::pair<dev_t, ino_t>;
  using Names = std::map<Place, FileId>;

  struct File {
    bool directory = false;
    std::string baseline;    // content at the start
    uint64_t sizeBytes = 0;  // now
  };
  struct Write {
    FileId file;
    uint64_t offsetBytes;
    std::string bytes;
    bool durable;
  };
  struct Resize {
    FileId file;
    uint64_t sizeBytes;
  };
  struct Naming {  // all of it, or nothing
    std::vector<std::pair<Place, FileId>> changes;
  };
  struct Sync {  // of a file or a directory: what it had among the first `covers` operations
    FileId file;
    size_t covers;
  };
  using Operation = std::variant<Write, Resize, Naming, Sync>;

  enum class Mood { kDropsAll, kKeepsAll, kMixed };  // towards what was not synced
  enum class Fate { kKept, kDropped, kTorn };

  FileId addFile(const Identity& identity, bool directory);
  void addBaseline(FileId directory, const std::string& path);
  FileId fileOf(int fd) const;
  void noteWrite(FileId file, uint64_t offsetBytes, std::string bytes, bool durable);
  size_t coveredUpTo(FileId file, size_t n) const;
  struct PlannedFile {
    FileId file = kNoFile;
    std::string path;                    // below the directory
    std::optional<std::string> content;  // none: a directory
  };
  using Plan = std::vector<PlannedFile>;  // in the order in which they can be made
  Plan planOf(size_t n, Mood mood, Random& random) const;
  static void make(const Plan& plan, const std::string& into);
  static Identity identityOf(const std::string& path);
  Names namesAfter(size_t n, Mood mood, Random& random) const;
  std::string contentAfter(FileId file, size_t n, Mood mood, Random& random) const;

  mutable std::mutex mutex_;  // over all that follows
  std::string directory_;
  std::vector<File> files_;
  std::map<Identity, FileId> known_;
  Names baselineNames_, names_;
  std::vector<Operation> operations_;
};

}  // namespace trainfs::test
