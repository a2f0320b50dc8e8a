#include "oss/object_index.h"

#include <fcntl.h>
#include <lmdb.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>
#include <stdexcept>

#include "lmdb_file.h"
#include "small_file.h"
#include "trainfs/bulk.h"
#include "trainfs/codec.h"
#include "trainfs/logging.h"
#include "trainfs/object_id.h"

namespace trainfs::oss {

namespace {

constexpr uint32_t kIndexVersion = 1;
constexpr const char* kVersionKey = "format";
constexpr const char* kRunKey = "run";
constexpr const char* kStartKey = "start";
constexpr unsigned kReadersMax = 64;

MDB_val valueOf(const std::string& bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};
}

std::string keyOf(const ObjectId& object) {
  auto id = encodeObjectId(object);
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

std::string keyOf(const ObjectId& object, uint64_t chunk) {
  std::string key = keyOf(object);
  if (chunk == 0) return key;
  for (int shift = 56; shift >= 0; shift -= 8) key += static_cast<char>(chunk >> shift);
  return key;
}

bool isOfNoObject(const IndexChange& change) {
  using Kind = IndexChange::Kind;
  return change.kind == Kind::kDisown || change.kind == Kind::kOrderlyStop ||
         change.kind == Kind::kStart;
}

uint64_t randomNumber() {
  std::random_device device;
  uint64_t number = (uint64_t{device()} << 32) | device();
  return number == 0 ? 1 : number;
}

std::string_view bytesOf(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

}  // namespace

uint64_t bootOfMachine() {
  auto id = firstLineOf("/proc/sys/kernel/random/boot_id");
  // Without it every start counts as one after a power cut: too careful, never too trusting.
  return id.empty() ? randomNumber() : blockSum(id.data(), id.size());
}

int ObjectIndex::errnoOf(int code, const char* what) const {
  if (code == MDB_MAP_FULL) return ENOSPC;
  if (code != ENOSPC)
    spdlog::error("object index {}: {}: {}", directory_, what, mdb_strerror(code));
  return code > 0 ? code : EIO;
}

ObjectIndex::ObjectIndex(const std::string& directory, const std::string& note, uint64_t boot)
    : directory_(directory), note_(note) {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    throw std::runtime_error("cannot make " + directory + ": " + std::strerror(errno));
  try {
    open(boot);
  } catch (...) {
    mdb_env_close(environment_);
    throw;
  }
  writer_ = std::thread([this] { writeLoop(); });
}

void ObjectIndex::open(uint64_t boot) {
  auto check = [&](int code, const char* what) {
    if (code != MDB_SUCCESS)
      throw std::runtime_error("object index " + directory_ + ": " + what + ": " +
                               mdb_strerror(code));
  };
  if (auto wrong = checkLmdbFile(directory_); !wrong.empty()) throw std::runtime_error(wrong);
  check(mdb_env_create(&environment_), "create");
  nameAssertions(environment_);
  check(mdb_env_set_mapsize(environment_, kMapBytes), "map size");
  check(mdb_env_set_maxreaders(environment_, kReadersMax), "readers");
  check(mdb_env_open(environment_, directory_.c_str(), MDB_NOTLS | MDB_NORDAHEAD, 0600), "open");
  keepReserve();
  MDB_txn* transaction = nullptr;
  check(mdb_txn_begin(environment_, nullptr, 0, &transaction), "begin");
  try {
    MDB_dbi table;
    check(mdb_dbi_open(transaction, nullptr, 0, &table), "open table");
    table_ = table;
    checkFormat(transaction);
    StoredRun run = loadRun(transaction);
    foundUnclean_ = run.serving;
    // After an orderly stop nothing was in memory only.
    bool inMemory = run.boot == boot && note_.read() == run.verifier;
    bool kept = run.verifier != 0 && (!run.serving || inMemory);
    verifier_ = kept ? run.verifier : randomNumber();
    check(storeRun(transaction, {boot, verifier_, true}), "write run");
    loadStart(transaction);
    check(storeStart(transaction, start_), "write start");
  } catch (...) {
    mdb_txn_abort(transaction);
    throw;
  }
  check(mdb_txn_commit(transaction), "commit run");
  note_.write(verifier_);
}

void ObjectIndex::checkFormat(MDB_txn* transaction) {
  auto fail = [&](const std::string& what) {
    throw std::runtime_error("object index " + directory_ + what);
  };
  std::string key = kVersionKey;
  MDB_val keyValue = valueOf(key), value;
  int code = mdb_get(transaction, table_, &keyValue, &value);
  if (code == MDB_SUCCESS) {
    auto version = trainfs::Reader(bytesOf(value)).get<uint32_t>();
    if (version != kIndexVersion)
      fail(" has format version " + std::to_string(version) + ", only " +
           std::to_string(kIndexVersion) + " is known here");
    return;
  }
  std::string version = Writer().put(kIndexVersion).take();
  value = valueOf(version);
  if (code == MDB_NOTFOUND) code = mdb_put(transaction, table_, &keyValue, &value, 0);
  if (code != MDB_SUCCESS) fail(std::string(": format version: ") + mdb_strerror(code));
}

StoredRun ObjectIndex::loadRun(MDB_txn* transaction) {
  std::string key = kRunKey;
  MDB_val keyValue = valueOf(key), value;
  if (mdb_get(transaction, table_, &keyValue, &value) != MDB_SUCCESS) return {};
  // Not readable: nothing is known of the last server, so the worst is taken for granted.
  return decodeRun(bytesOf(value)).value_or(StoredRun{.serving = true});
}

int ObjectIndex::storeRun(MDB_txn* transaction, const StoredRun& run) {
  std::string key = kRunKey, bytes = encodeRun(run);
  MDB_val keyValue = valueOf(key), value = valueOf(bytes);
  return mdb_put(transaction, table_, &keyValue, &value, 0);
}

// One that was offered to the MDS and may have been accepted stays until that is known.
void ObjectIndex::loadStart(MDB_txn* transaction) {
  std::string key = kStartKey;
  MDB_val keyValue = valueOf(key), value;
  int code = mdb_get(transaction, table_, &keyValue, &value);
  if (code != MDB_SUCCESS && code != MDB_NOTFOUND)
    throw std::runtime_error("object index " + directory_ + ": start: " + mdb_strerror(code));
  if (code == MDB_SUCCESS) {
    auto start = decodeStart(bytesOf(value));
    if (!start)
      throw std::runtime_error("object index " + directory_ + ": damaged record of starts");
    start_ = *start;
  }
  startIsLeftover_ = start_.accepted != start_.current;
  if (!startIsLeftover_) start_.current = randomNumber();
}

int ObjectIndex::storeStart(MDB_txn* transaction, const StoredStart& start) {
  std::string key = kStartKey, bytes = encodeStart(start);
  MDB_val keyValue = valueOf(key), value = valueOf(bytes);
  return mdb_put(transaction, table_, &keyValue, &value, 0);
}

StoredStart ObjectIndex::start() {
  std::lock_guard lock(mutex_);
  return start_;
}

void ObjectIndex::noteAccepted(Done done) {
  StoredStart next;
  {
    std::lock_guard lock(mutex_);
    next = {start_.current, startIsLeftover_ ? randomNumber() : start_.current};
  }
  change({.kind = IndexChange::Kind::kStart, .start = next},
         [this, next, done = std::move(done)](int error) {
           if (error == 0) {
             std::lock_guard lock(mutex_);
             start_ = next;
             startIsLeftover_ = false;
           }
           done(error);
         });
}

// The file system gives the pages that LMDB will write next before data takes them.
void ObjectIndex::keepReserve() {
  MDB_envinfo info;
  MDB_stat stat;
  int fd;
  if (mdb_env_info(environment_, &info) != MDB_SUCCESS ||
      mdb_env_stat(environment_, &stat) != MDB_SUCCESS ||
      mdb_env_get_fd(environment_, &fd) != MDB_SUCCESS)
    return;
  uint64_t used = (info.me_last_pgno + 1) * stat.ms_psize;
  if (used + kReserveBytes <= reservedEnd_) return;
  uint64_t end = used + 2 * kReserveBytes;
  // Refused: the disk is full already, or its file system cannot. Then an index that grows gets
  // ENOSPC itself, and says so.
  if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(end)) == 0) reservedEnd_ = end;
}

// Goes along with every commit until one succeeds: then no sync is answered well before it.
void ObjectIndex::disownUnsynced() {
  note_.remove();
  disown_ = true;
  change({.kind = IndexChange::Kind::kDisown}, [](int) {});
}

ObjectIndex::~ObjectIndex() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  writer_.join();
  mdb_env_close(environment_);
}

void ObjectIndex::noteOrderlyStop() {
  change({.kind = IndexChange::Kind::kOrderlyStop}, [this](int error) {
    if (error == 0) note_.remove();
  });
}

void ObjectIndex::change(IndexChange change, Done done) {
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(change), std::move(done)});
  }
  wake_.notify_one();
}

void ObjectIndex::writeLoop() {
  while (true) {
    std::vector<Waiting> batch;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      if (waiting_.size() <= kBatchMax) {
        batch.swap(waiting_);
      } else {
        auto end = waiting_.begin() + kBatchMax;
        batch.assign(std::move_iterator(waiting_.begin()), std::move_iterator(end));
        waiting_.erase(waiting_.begin(), end);
      }
    }
    write(std::move(batch));
  }
}

void ObjectIndex::sortByKey(std::vector<Waiting>& batch) {
  auto ofNoObject = [](const Waiting& entry) { return isOfNoObject(entry.change); };
  for (auto from = batch.begin(); from != batch.end();) {
    auto barrier = std::find_if(from, batch.end(), ofNoObject);
    std::multimap<ObjectId, Waiting> sorted;  // equal keys: as they came
    for (auto entry = from; entry != barrier; ++entry)
      sorted.emplace(entry->change.object, std::move(*entry));
    for (auto& [object, entry] : sorted) *from++ = std::move(entry);
    from = std::find_if_not(barrier, batch.end(), ofNoObject);
  }
}

// One that cannot be applied is answered alone; the others go on without it.
void ObjectIndex::write(std::vector<Waiting> batch) {
  sortByKey(batch);
  while (!batch.empty()) {
    auto culprit = batch.end();
    int error = commit(batch, culprit);
    if (culprit == batch.end()) {
      for (auto& entry : batch) entry.done(error);
      return;
    }
    culprit->done(error);
    batch.erase(culprit);
  }
}

int ObjectIndex::commit(std::vector<Waiting>& batch, std::vector<Waiting>::iterator& culprit) {
  MDB_txn* transaction = nullptr;
  if (int code = mdb_txn_begin(environment_, nullptr, 0, &transaction); code != MDB_SUCCESS)
    return errnoOf(code, "begin");
  bool disown = disown_;
  int code = disown ? applyRun(transaction, {.kind = IndexChange::Kind::kDisown}) : MDB_SUCCESS;
  for (auto entry = batch.begin(); entry != batch.end() && code == MDB_SUCCESS; ++entry) {
    code = apply(transaction, entry->change);
    if (code != MDB_SUCCESS) culprit = entry;
  }
  if (code != MDB_SUCCESS) {
    mdb_txn_abort(transaction);
    return errnoOf(code, "change");
  }
  code = mdb_txn_commit(transaction);
  if (code != MDB_SUCCESS) return errnoOf(code, "commit");
  if (disown) disown_ = false;
  keepReserve();
  return 0;
}

// Deletes the chunks' records from the second on; the first is part of the object's record.
int ObjectIndex::drop(MDB_txn* transaction, const IndexChange& change) {
  MDB_cursor* cursor = nullptr;
  if (int code = mdb_cursor_open(transaction, table_, &cursor); code != MDB_SUCCESS) return code;
  std::string from = keyOf(change.object, std::max<uint64_t>(change.dropFirst, 1));
  std::string end = keyOf(change.object, change.dropEnd);
  std::vector<std::string> keys;
  MDB_val key = valueOf(from), value;
  int code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
  while (code == MDB_SUCCESS) {
    std::string found(static_cast<const char*>(key.mv_data), key.mv_size);
    if (found >= end || found.compare(0, kObjectIdBytes, end, 0, kObjectIdBytes) != 0) break;
    keys.push_back(std::move(found));
    code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
  }
  mdb_cursor_close(cursor);
  if (code != MDB_SUCCESS && code != MDB_NOTFOUND) return code;
  for (auto& gone : keys) {
    key = valueOf(gone);
    if (code = mdb_del(transaction, table_, &key, nullptr); code != MDB_SUCCESS) return code;
  }
  return MDB_SUCCESS;
}

int ObjectIndex::applyRun(MDB_txn* transaction, const IndexChange& change) {
  StoredRun run = loadRun(transaction);
  if (change.kind == IndexChange::Kind::kDisown) run.verifier = 0;
  if (change.kind == IndexChange::Kind::kOrderlyStop) run.serving = false;
  return storeRun(transaction, run);
}

int ObjectIndex::apply(MDB_txn* transaction, const IndexChange& change) {
  if (change.kind == IndexChange::Kind::kStart) return storeStart(transaction, change.start);
  if (isOfNoObject(change)) return applyRun(transaction, change);
  if (change.dropEnd > std::max<uint64_t>(change.dropFirst, 1))
    if (int code = drop(transaction, change); code != MDB_SUCCESS) return code;

  std::string recordKey = keyOf(change.object);
  MDB_val key = valueOf(recordKey), value;
  int code = mdb_get(transaction, table_, &key, &value);
  if (code != MDB_SUCCESS && code != MDB_NOTFOUND) return code;
  bool exists = code == MDB_SUCCESS;
  if (change.kind == IndexChange::Kind::kRemove)
    return exists ? mdb_del(transaction, table_, &key, nullptr) : MDB_SUCCESS;

  Found found;
  if (exists) {
    auto stored = decodeRecord({static_cast<const char*>(value.mv_data), value.mv_size});
    if (!stored) return EIO;
    found = std::move(*stored);
  }
  if (change.kind == IndexChange::Kind::kMarkDirty) {
    if (!exists) return MDB_SUCCESS;  // no record is as good as a dirty one
    found.record.dirty = true;
  } else {
    found.record = change.record;
  }
  if (change.dropFirst == 0 && change.dropEnd > 0) found.firstSums.clear();
  for (auto& [chunk, sums] : change.chunks) {
    if (chunk == 0) {
      found.firstSums = sums;
      continue;
    }
    std::string chunkKey = keyOf(change.object, chunk);
    key = valueOf(chunkKey);
    if (sums.empty()) {
      code = mdb_del(transaction, table_, &key, nullptr);
      if (code != MDB_SUCCESS && code != MDB_NOTFOUND) return code;
      continue;
    }
    std::string bytes = encodeSums(sums);
    value = valueOf(bytes);
    if (code = mdb_put(transaction, table_, &key, &value, 0); code != MDB_SUCCESS) return code;
  }
  std::string record = encodeRecord(found);
  key = valueOf(recordKey);
  value = valueOf(record);
  return mdb_put(transaction, table_, &key, &value, 0);
}

ObjectIndex::Reader::Reader(ObjectIndex& index) : index_(index) {
  int code = mdb_txn_begin(index_.environment_, nullptr, MDB_RDONLY, &transaction_);
  if (code != MDB_SUCCESS)
    throw std::runtime_error("object index " + index_.directory_ + ": " + mdb_strerror(code));
  mdb_txn_reset(transaction_);
}

ObjectIndex::Reader::~Reader() {
  mdb_txn_abort(transaction_);
}

Result<std::string> ObjectIndex::Reader::get(const std::string& key) {
  if (int code = mdb_txn_renew(transaction_); code != MDB_SUCCESS)
    return Errno(index_.errnoOf(code, "renew"));
  MDB_val keyValue = valueOf(key), value;
  int code = mdb_get(transaction_, index_.table_, &keyValue, &value);
  std::string bytes;
  if (code == MDB_SUCCESS) bytes.assign(static_cast<const char*>(value.mv_data), value.mv_size);
  mdb_txn_reset(transaction_);  // a snapshot kept open would keep old pages from being used again
  if (code == MDB_NOTFOUND) return Errno(ENOENT);
  if (code != MDB_SUCCESS) return Errno(index_.errnoOf(code, "read"));
  return bytes;
}

Result<ObjectIndex::Found> ObjectIndex::Reader::find(const ObjectId& object) {
  auto bytes = get(keyOf(object));
  if (!bytes) return bytes.error();
  if (auto stored = decodeRecord(*bytes)) return std::move(*stored);
  spdlog::error("object index {}: record of object {} is not readable (version {})",
                index_.directory_, objectIdHex(object),
                bytes->empty() ? 0 : static_cast<uint8_t>((*bytes)[0]));
  return Errno(EIO);
}

Result<std::vector<uint64_t>> ObjectIndex::Reader::sums(const ObjectId& object, uint64_t chunk) {
  auto bytes = get(keyOf(object, chunk));
  if (!bytes && bytes.error() == Errno(ENOENT)) return std::vector<uint64_t>{};
  if (!bytes) return bytes.error();
  if (auto sums = decodeSums(*bytes)) return std::move(*sums);
  spdlog::error("object index {}: sums of object {}, chunk {}, are not readable", index_.directory_,
                objectIdHex(object), chunk);
  return Errno(EIO);
}

}  // namespace trainfs::oss
