#include "mds/lmdb_store.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <lmdb.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "lmdb_file.h"
#include "mds/durable_files.h"
#include "mds/keys.h"
#include "mds/lmdb_room.h"
#include "mds/records.h"

namespace trainfs::mds {

struct LmdbStore::Environment {
  std::string directory;
  int lockFd = -1;
  std::string dataPath;
  MDB_env* env = nullptr;
  MDB_dbi dbi = 0;
  size_t pageBytes = 0;
  std::mutex commitMutex;     // held while a commit may write a meta page; also over pinned
  std::set<uint64_t> pinned;  // transactions
  std::unique_ptr<LmdbRoom> room;
  size_t idleMax = 0;
  std::mutex idleMutex;
  std::vector<MDB_txn*> idle;  // reset read transactions; by idleMutex

  ~Environment() {
    for (auto* txn : idle) mdb_txn_abort(txn);
    if (env != nullptr) mdb_env_close(env);
    if (lockFd >= 0) close(lockFd);
  }
};

namespace {

using Environment = LmdbStore::Environment;

// Full or out of readers is a state that passes; everything else means that the store is done for.
void check(int code, const Environment& environment, const char* what) {
  if (code == 0) return;
  if (code == MDB_MAP_FULL || code == MDB_READERS_FULL || code == ENOSPC || code == EDQUOT)
    kj::throwFatalException(KJ_EXCEPTION(OVERLOADED, "the metadata store is full", what,
                                         environment.directory, mdb_strerror(code)));
  throw StoreBroken(KJ_EXCEPTION(FAILED, "the metadata store failed", what, environment.directory,
                                 mdb_strerror(code)));
}

MDB_val toVal(std::string_view bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};  // LMDB only reads it
}

std::string_view toView(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

struct Cursor {
  MDB_cursor* raw = nullptr;
  ~Cursor() {
    if (raw != nullptr) mdb_cursor_close(raw);
  }
};

std::optional<std::string_view> getIn(MDB_txn* txn, const Environment& environment,
                                      std::string_view key) {
  auto keyVal = toVal(key);
  MDB_val value;
  int code = mdb_get(txn, environment.dbi, &keyVal, &value);
  if (code == MDB_NOTFOUND) return std::nullopt;
  check(code, environment, "get");
  return toView(value);
}

void scanIn(MDB_txn* txn, const Environment& environment, std::string_view from,
            std::string_view prefix,
            const std::function<bool(std::string_view, std::string_view)>& visit) {
  Cursor cursor;
  check(mdb_cursor_open(txn, environment.dbi, &cursor.raw), environment, "open a cursor");
  auto key = toVal(from);
  MDB_val value;
  // LMDB knows no empty key.
  int code = mdb_cursor_get(cursor.raw, &key, &value, from.empty() ? MDB_FIRST : MDB_SET_RANGE);
  while (code == 0 && toView(key).starts_with(prefix) && visit(toView(key), toView(value)))
    code = mdb_cursor_get(cursor.raw, &key, &value, MDB_NEXT);
  if (code != MDB_NOTFOUND) check(code, environment, "scan");
}

MDB_txn* beginRead(Environment& environment) {
  {
    std::lock_guard lock(environment.idleMutex);
    if (!environment.idle.empty()) {
      auto* txn = environment.idle.back();
      environment.idle.pop_back();
      int code = mdb_txn_renew(txn);
      if (code != 0) mdb_txn_abort(txn);
      check(code, environment, "take a snapshot");
      return txn;
    }
  }
  MDB_txn* txn = nullptr;
  check(mdb_txn_begin(environment.env, nullptr, MDB_RDONLY, &txn), environment, "take a snapshot");
  return txn;
}

// Kept for reuse: a renewed read transaction needs no search for a free reader slot.
void endRead(Environment& environment, MDB_txn* txn) {
  mdb_txn_reset(txn);
  std::lock_guard lock(environment.idleMutex);
  if (environment.idle.size() < environment.idleMax)
    environment.idle.push_back(txn);
  else
    mdb_txn_abort(txn);
}

class Snapshot final : public View {
 public:
  explicit Snapshot(Environment& environment)
      : environment_(environment), txn_(beginRead(environment)) {}
  ~Snapshot() override { endRead(environment_, txn_); }

  std::optional<std::string_view> get(std::string_view key) const override {
    return getIn(txn_, environment_, key);
  }
  void scan(std::string_view from, std::string_view prefix,
            const std::function<bool(std::string_view, std::string_view)>& visit) const override {
    scanIn(txn_, environment_, from, prefix, visit);
  }

 private:
  Environment& environment_;
  MDB_txn* txn_;
};

// LMDB keeps two meta pages, the first two of its file, and the transaction of number n writes page
// n % 2. A page is a header of 16 bytes and this struct (MDB_meta of 0.9, in whose file format it
// is fixed); what changes in it lies within one sector.
namespace meta {
constexpr size_t kOffsetInPage = 16;
constexpr size_t kBytes = 136;
constexpr uint32_t kMagic = 0xbeefc0de, kVersion = 1;

template <typename T>
T field(std::string_view meta, size_t offset) {
  T value;
  KJ_REQUIRE(offset + sizeof value <= meta.size(), "a meta page of the store is cut off");
  std::memcpy(&value, meta.data() + offset, sizeof value);
  return value;
}
bool sound(std::string_view meta) {
  return meta.size() == kBytes && field<uint32_t>(meta, 0) == kMagic &&
         field<uint32_t>(meta, 4) == kVersion;
}
uint64_t pageBytes(std::string_view meta) {
  return field<uint32_t>(meta, 24);
}
uint64_t transaction(std::string_view meta) {
  return field<uint64_t>(meta, 128);
}
}  // namespace meta

class LmdbPin final : public Pin {
 public:
  explicit LmdbPin(Environment& environment) : environment_(environment) {
    std::lock_guard lock(environment_.commitMutex);
    check(mdb_txn_begin(environment_.env, nullptr, MDB_RDONLY, &txn_), environment_, "pin");
    KJ_ON_SCOPE_FAILURE(mdb_txn_abort(txn_));
    auto number = mdb_txn_id(txn_);
    int fd = -1;
    check(mdb_env_get_fd(environment_.env, &fd), environment_, "pin");
    meta_ = readAt(fd, number % 2 * environment_.pageBytes + meta::kOffsetInPage, meta::kBytes,
                   environment_.dataPath);
    KJ_REQUIRE(meta::sound(meta_) && meta::transaction(meta_) == number,
               "this version of LMDB keeps its meta pages in a way that is not known here",
               environment_.dataPath, mdb_version(nullptr, nullptr, nullptr));
    environment_.pinned.insert(number);
  }
  ~LmdbPin() override {
    std::lock_guard lock(environment_.commitMutex);
    environment_.pinned.erase(mdb_txn_id(txn_));
    mdb_txn_abort(txn_);
  }
  const View& view() const override { return view_; }
  const std::string& meta() const override { return meta_; }

 private:
  class PinnedView final : public View {
   public:
    explicit PinnedView(const LmdbPin& pin) : pin_(pin) {}
    std::optional<std::string_view> get(std::string_view key) const override {
      return getIn(pin_.txn_, pin_.environment_, key);
    }
    void scan(std::string_view from, std::string_view prefix,
              const std::function<bool(std::string_view, std::string_view)>& visit) const override {
      scanIn(pin_.txn_, pin_.environment_, from, prefix, visit);
    }

   private:
    const LmdbPin& pin_;
  };

  Environment& environment_;
  MDB_txn* txn_ = nullptr;
  std::string meta_;
  PinnedView view_{*this};
};

class WriteTxn final : public Txn {
 public:
  explicit WriteTxn(Environment& environment) : environment_(environment) {
    check(mdb_txn_begin(environment.env, nullptr, 0, &txn_), environment, "begin a transaction");
  }
  ~WriteTxn() override {
    if (txn_ != nullptr) mdb_txn_abort(txn_);
  }

  std::optional<std::string_view> get(std::string_view key) const override {
    return getIn(txn_, environment_, key);
  }
  void scan(std::string_view from, std::string_view prefix,
            const std::function<bool(std::string_view, std::string_view)>& visit) const override {
    scanIn(txn_, environment_, from, prefix, visit);
  }
  void put(std::string_view key, std::string_view value) override {
    auto keyVal = toVal(key), valueVal = toVal(value);
    check(mdb_put(txn_, environment_.dbi, &keyVal, &valueVal, 0), environment_, "put");
  }
  void erase(std::string_view key) override {
    auto keyVal = toVal(key);
    int code = mdb_del(txn_, environment_.dbi, &keyVal, nullptr);
    if (code != MDB_NOTFOUND) check(code, environment_, "erase");
  }
  void commit() override {
    std::lock_guard lock(environment_.commitMutex);
    auto* txn = std::exchange(txn_, nullptr);  // gone, whatever comes out of it
    int code = mdb_txn_commit(txn);
    // LMDB says that of a write that was cut short, too.
    if (code == EIO && isShortOfDisk()) code = ENOSPC;
    check(code, environment_, "commit");
  }

 private:
  static constexpr uint64_t kShortBytes = kMiB;
  bool isShortOfDisk() const {
    struct statvfs status{};
    return statvfs(environment_.directory.c_str(), &status) == 0 &&
           uint64_t{status.f_bavail} * status.f_frsize < kShortBytes;
  }

  Environment& environment_;
  MDB_txn* txn_ = nullptr;
};

// LMDB must never be open twice: its own locks would not notice within one process, and two servers
// on one target would hand out the same inode numbers. flock() conflicts between any two opens.
void lockDirectory(Environment& environment) {
  auto path = environment.directory + "/store.lock";
  KJ_SYSCALL(environment.lockFd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), path);
  KJ_REQUIRE(flock(environment.lockFd, LOCK_EX | LOCK_NB) == 0,
             "the metadata store is in use by another server", environment.directory);
}

// Both pages become the checkpoint's, so that nothing of what was committed later is left to find.
void restoreMeta(const Environment& environment, std::string_view meta) {
  const auto& path = environment.dataPath;
  KJ_REQUIRE(meta::sound(meta), "the checkpoint's meta page is none", path);
  int fd;
  KJ_SYSCALL(fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC), path);
  KJ_DEFER(close(fd));
  for (uint64_t page : {0, 1})
    writeAt(fd, page * meta::pageBytes(meta) + meta::kOffsetInPage, meta, path);
  syncData(fd, path);
}

// LMDB maps the file and would end with SIGBUS where it is shorter than its meta page says.
void requireWhole(const Environment& environment) {
  const auto& path = environment.dataPath;
  int fd;
  KJ_SYSCALL(fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
  KJ_DEFER(close(fd));
  auto first = readAt(fd, meta::kOffsetInPage, meta::kBytes, path);
  KJ_REQUIRE(meta::sound(first), "the metadata store is damaged: its first page is no LMDB's",
             path);
  auto bytes = meta::pageBytes(first);
  auto second = readAt(fd, bytes + meta::kOffsetInPage, meta::kBytes, path);
  KJ_REQUIRE(meta::sound(second), "the metadata store is damaged: its second page is no LMDB's",
             path);
  if (auto wrong = checkLmdbFile(environment.directory); !wrong.empty())
    KJ_FAIL_REQUIRE("the metadata store cannot be opened", wrong);
}

void openEnvironment(Environment& environment, const LmdbOptions& options) {
  const auto& directory = environment.directory;
  check(mdb_env_create(&environment.env), environment, "create the environment");
  nameAssertions(environment.env);
  check(mdb_env_set_mapsize(environment.env, options.mapBytes), environment, "set the map size");
  check(mdb_env_set_maxreaders(environment.env, options.snapshotsMax), environment,
        "set the readers");
  // NORDAHEAD: the store may be larger than memory, and its reads are not sequential.
  unsigned flags = MDB_NOTLS | MDB_NORDAHEAD | (options.syncedCommits ? 0 : MDB_NOSYNC);
  int code = mdb_env_open(environment.env, directory.c_str(), flags, 0600);
  KJ_REQUIRE(code == 0, "the metadata store cannot be opened", directory, mdb_strerror(code));
  int stale = 0;
  check(mdb_reader_check(environment.env, &stale), environment, "clear readers that died");
  MDB_txn* txn = nullptr;
  check(mdb_txn_begin(environment.env, nullptr, 0, &txn), environment, "open the database");
  code = mdb_dbi_open(txn, nullptr, 0, &environment.dbi);
  if (code != 0) mdb_txn_abort(txn);
  check(code, environment, "open the database");
  check(mdb_txn_commit(txn), environment, "open the database");
  MDB_stat stat{};
  check(mdb_env_stat(environment.env, &stat), environment, "ask for the size of pages");
  environment.pageBytes = stat.ms_psize;
  environment.room =
      std::make_unique<LmdbRoom>(environment.env, stat.ms_psize, options.reserveBytes);
}

}  // namespace

std::unique_ptr<LmdbStore> LmdbStore::open(const std::string& directory, const Options& options) {
  bool there = access((directory + "/data.mdb").c_str(), F_OK) == 0;
  KJ_REQUIRE(there || options.create, "no metadata store here; make one with mkfs.trainfs",
             directory);
  auto environment = std::make_unique<Environment>();
  environment->directory = directory;
  environment->dataPath = directory + "/data.mdb";
  environment->idleMax = options.idleSnapshotsMax;
  lockDirectory(*environment);
  if (!options.meta.empty()) restoreMeta(*environment, options.meta);
  if (there) requireWhole(*environment);
  openEnvironment(*environment, options);
  if (!there) syncDirectory(directory);
  std::unique_ptr<LmdbStore> store(new LmdbStore(std::move(environment)));
  auto view = store->snapshot();
  if (!options.create || view->get(kFormatVersionKey)) requireFormat(*view, directory);
  return store;
}

LmdbStore::LmdbStore(std::unique_ptr<Environment> environment)
    : environment_(std::move(environment)) {}
LmdbStore::~LmdbStore() = default;

std::unique_ptr<View> LmdbStore::snapshot() {
  return std::make_unique<Snapshot>(*environment_);
}
std::unique_ptr<Txn> LmdbStore::begin() {
  return std::make_unique<WriteTxn>(*environment_);
}

Room LmdbStore::makeRoom() {
  uint64_t pinned = ~uint64_t{0};
  {
    std::lock_guard lock(environment_->commitMutex);
    if (!environment_->pinned.empty()) pinned = *environment_->pinned.begin();
  }
  return environment_->room->make(pinned);
}
std::unique_ptr<Pin> LmdbStore::pin() {
  return std::make_unique<LmdbPin>(*environment_);
}
void LmdbStore::sync() {
  check(mdb_env_sync(environment_->env, 1), *environment_, "sync");
}
uint64_t LmdbStore::fileBytes() const {
  return environment_->room->usedBytes();
}

}  // namespace trainfs::mds
