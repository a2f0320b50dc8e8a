// What recovery finds in the log, what it refuses, and a store that is full.
#include "mds/journal.h"

#include <kj/async-io.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "lib/temp_dir.h"
#include "mds/command_record.h"
#include "mds/lmdb_log.h"
#include "mds/namespace.h"
#include "mds/state_machine.h"
#include "striping/placement.h"
#include "unit/mds/store_check.h"

using namespace trainfs;
using namespace trainfs::mds;
using namespace trainfs::test;

namespace {

constexpr uint64_t kSegmentBytes = 64 * kKiB;

JournalOptions smallJournal() {
  JournalOptions options;
  options.store.mapBytes = 64 * kMiB;
  options.store.reserveBytes = kMiB;
  options.log = {.segmentBytes = kSegmentBytes, .segmentsLeast = 3, .segmentsMax = 6};
  // Only the checkpoints that a test makes, or that the log needs.
  options.checkpointInterval = std::chrono::hours(1);
  return options;
}

JournalOptions soonFull() {
  auto options = smallJournal();
  options.store.mapBytes = 8 * kMiB;
  options.store.reserveBytes = 2 * kMiB;
  return options;
}

void formatStore(const std::string& directory) {
  auto store = LmdbStore::open(directory, {.mapBytes = 64 * kMiB, .create = true});
  auto txn = store->begin();
  format(*txn, "trainfs", 0, {1, 0});
  txn->commit();
}

Command makeDir(uint64_t number) {
  return {.now = {5, 0},
          .op = CreateOp{.parent = kRootInode,
                         .name = "d" + std::to_string(number),
                         .mode = S_IFDIR | 0755,
                         .newInode = {100 + number}}};
}

std::string failureOf(const std::function<void()>& action) {
  std::string message;
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { action(); }))
    message = exception->getDescription().cStr();
  return message;
}

// A target whose server was killed: `from` as it is while the journal is open, without its locks.
void copyTarget(const std::string& from, const std::string& to) {
  std::filesystem::copy(
      from, to,
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
}

// Makes directories from..to, and leaves in `dir` what a kill would.
void serveAndDie(const TempDir& dir, uint64_t from, uint64_t to) {
  auto io = kj::setupAsyncIo();
  TempDir killed;
  {
    auto journal = Journal::open(dir.path(), smallJournal());
    LmdbLog log(*journal);
    for (uint64_t i = from; i <= to; ++i) log.append(makeDir(i)).wait(io.waitScope);
    copyTarget(dir.path(), killed.path());
  }
  copyTarget(killed.path(), dir.path());
}

size_t entries(Store& store) {
  return readdir(*store.snapshot(), kRootInode, 0, 1000)->entries.size();
}

// Where the record with the n-th command of the first segment begins: each has one.
uint64_t offsetOfRecord(const TempDir& dir, size_t n) {
  auto segment = dir.read("log/1000");
  auto seed = decodeSegmentHead(segment.substr(0, kSegmentHeadBytes), "")->seed;
  LogRecordReader reader(segment, seed);
  uint64_t at = kSegmentHeadBytes;
  for (size_t i = 0; i < n; ++i) {
    auto record = reader.next();
    REQUIRE(record.has_value());
    size_t bytes = 0;
    for (auto command : record->commands) bytes += command.size();
    at += logRecordBytes(record->commands.size(), bytes);
  }
  return at;
}

void overwriteIn(const std::string& path, uint64_t offset, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(offset));
  file << bytes;
  REQUIRE(file.good());
}

}  // namespace

TEST_CASE("a killed MDT has everything after its log was applied again") {
  TempDir dir;
  formatStore(dir.path());
  serveAndDie(dir, 1, 20);
  auto journal = Journal::open(dir.path(), smallJournal());
  CHECK(journal->recovered() == 20);
  CHECK(entries(journal->store()) == 20);
  CHECK(appliedIndex(*journal->store().snapshot()) == 20);
}

TEST_CASE("an MDT that was stopped in order has nothing to recover") {
  TempDir dir;
  formatStore(dir.path());
  auto io = kj::setupAsyncIo();
  {
    auto journal = Journal::open(dir.path(), smallJournal());
    LmdbLog log(*journal);
    for (uint64_t i = 1; i <= 20; ++i) log.append(makeDir(i)).wait(io.waitScope);
  }
  auto journal = Journal::open(dir.path(), smallJournal());
  CHECK(journal->recovered() == 0);
  CHECK(entries(journal->store()) == 20);
}

TEST_CASE(
    "commands in the log that a server could not apply any more are applied by the next start") {
  TempDir dir;
  formatStore(dir.path());
  {
    auto journal = Journal::open(dir.path(), smallJournal());
    auto bytes = encodeCommand(makeDir(1));
    journal->append(1, {bytes});  // as when the store is full until the server is stopped
  }
  auto journal = Journal::open(dir.path(), smallJournal());
  CHECK(journal->recovered() == 1);
  CHECK(entries(journal->store()) == 1);
}

TEST_CASE("the log uses its segments again and again") {
  TempDir dir;
  formatStore(dir.path());
  auto io = kj::setupAsyncIo();
  auto options = smallJournal();
  uint64_t last = 0;
  {
    auto journal = Journal::open(dir.path(), options);
    LmdbLog log(*journal);
    std::string value(30 * kKiB, 'v');
    for (; last < 60; ++last)
      log.append({.now = {5, 0}, .op = SetXattrOp{kRootInode, "user.a", value}}).wait(io.waitScope);
  }
  size_t segments = 0;
  for ([[maybe_unused]] auto& entry : std::filesystem::directory_iterator(dir / "log")) ++segments;
  CHECK(segments <= options.log.segmentsMax);
  auto journal = Journal::open(dir.path(), options);
  CHECK(appliedIndex(*journal->store().snapshot()) == last);
}

TEST_CASE("a torn end of the log is a write that nobody was told of") {
  TempDir dir;
  formatStore(dir.path());
  serveAndDie(dir, 1, 5);
  overwriteIn(dir / "log/1000", offsetOfRecord(dir, 4) + 40, "torn");
  serveAndDie(dir, 5, 8);  // goes on behind it
  auto journal = Journal::open(dir.path(), smallJournal());
  CHECK(entries(journal->store()) == 8);
}

TEST_CASE("a damaged record that others follow is refused, with file and offset") {
  TempDir dir;
  formatStore(dir.path());
  serveAndDie(dir, 1, 5);
  auto offset = offsetOfRecord(dir, 2);
  overwriteIn(dir / "log/1000", offset + 40, "bad!");
  auto message = failureOf([&] { Journal::open(dir.path(), smallJournal()); });
  INFO(message);
  CHECK(message.find("the log is damaged") != std::string::npos);
  CHECK(message.find("log/1000, offset " + std::to_string(offset)) != std::string::npos);
}

TEST_CASE("a checkpoint or a log that is damaged, missing or newer is refused by name") {
  TempDir dir;
  formatStore(dir.path());
  serveAndDie(dir, 1, 5);
  auto refusal = [&](const std::string& change) {
    auto message = failureOf([&] { Journal::open(dir.path(), smallJournal()); });
    INFO(change << ": " << message);
    CHECK(message.find(dir.path()) != std::string::npos);
    return message;
  };
  TempDir good;
  copyTarget(dir.path(), good.path());

  overwriteIn(dir / "log/1000", 4, {"\xff\0\0\0", 4});
  CHECK(refusal("version of the log").find("newer") != std::string::npos);
  copyTarget(good.path(), dir.path());
  overwriteIn(dir / "log/1000", 10, "damage");
  CHECK(refusal("head of the log").find("head") != std::string::npos);
  copyTarget(good.path(), dir.path());
  overwriteIn(dir / "checkpoint", 4096 + 4, {"\xff\0\0\0", 4});  // the first one is in there
  CHECK(refusal("version of the checkpoint").find("newer") != std::string::npos);
  overwriteIn(dir / "checkpoint", 4096, "damaged");
  CHECK(refusal("the checkpoint").find("damaged") != std::string::npos);
  std::filesystem::remove(dir / "checkpoint");
  CHECK(refusal("no checkpoint").find("checkpoint") != std::string::npos);
  copyTarget(good.path(), dir.path());
  std::filesystem::resize_file(dir / "data.mdb", 2 * 4096);
  CHECK(refusal("store cut off").find("cut off") != std::string::npos);
  copyTarget(good.path(), dir.path());
  CHECK(entries(Journal::open(dir.path(), smallJournal())->store()) == 5);
}

TEST_CASE("a checkpoint with one damaged place is not taken for the one before it") {
  TempDir dir;
  formatStore(dir.path());
  serveAndDie(dir, 1, 5);
  serveAndDie(dir, 6, 9);
  for (int place : {0, 4096}) {
    TempDir copy;
    copyTarget(dir.path(), copy.path());
    overwriteIn(copy / "checkpoint", place + 20, "damaged");
    auto message = failureOf([&] { Journal::open(copy.path(), smallJournal()); });
    INFO(message);
    CHECK(message.find("damaged") != std::string::npos);
    CHECK(message.find(copy / "checkpoint") != std::string::npos);
  }
}

TEST_CASE("commands survive being written down") {
  auto layout = *striping::place(
      striping::defaultLayout(),
      {{.index = 0, .active = true, .totalBytes = kGiB, .availableBytes = kGiB}}, 0);
  std::vector<std::pair<InodeId, SessionId>> holders{{{7}, {8}}, {{9}, {10}}};
  std::vector<Operation> all{
      CreateOp{{1}, "n", S_IFREG | 0644, 022, 5, "t", false, true, true, true, {3}, layout},
      LinkOp{{1}, {2}, "n"},
      UnlinkOp{{1}, "n", holders},
      RmdirOp{{1}, "n", holders},
      RenameOp{{1}, "a", {2}, "b", true, true, holders},
      SetAttrOp{{1}, 3, 4, 5, 6, 7, {8, 9}, {-10, 11}, 12, 13},
      SetXattrOp{{1}, "n", std::string("v\0w", 3), true, true},
      RemoveXattrOp{{1}, "n"},
      SetLayoutOp{{1}, layout, true, true},
      ReportOp{{1}, 2, 3, {4, 5}, {{6, 7}, {8, 9}}, true, true, 10, true},
      OpenWriteOp{{1}},
      InstantiateOp{{1}, 2, {{3}, {4}}},
      ReleaseOp{{1}},
      OpenSessionOp{"client"},
      EndSessionOp{{1}},
      ReapedOp{{1}, 2},
      RegisterOstOp{1, "uuid", "host", {2, 3}, 4, 5, true},
      RegisterChangelogOp{"n"},
      DeregisterChangelogOp{1},
      ClearChangelogOp{1, 2},
      TrimChangelogOp{},
      BeginTruncationOp{{{1}, 2, 3, 4, 5, 6, {7, 8}, {9, 10}, 11, 12}, 13, 14},
      EndTruncationOp{{1}, 2}};
  REQUIRE(all.size() == std::variant_size_v<Operation>);
  for (auto& op : all) {
    Command command{.session = {1},
                    .slot = 2,
                    .sequence = 3,
                    .identity = {4, 5, {6, 7}},
                    .now = {8, 9},
                    .op = op};
    auto bytes = encodeCommand(command);
    auto decoded = decodeCommand(bytes);
    INFO("operation " << op.index());
    CHECK(decoded.op.index() == op.index());
    CHECK(encodeCommand(decoded) == bytes);
    CHECK(decoded.identity.groups == command.identity.groups);
    for (size_t length = 0; length < bytes.size(); ++length)
      CHECK_THROWS_AS(decodeCommand(bytes.substr(0, length)), kj::Exception);
  }
  auto set = std::get<SetLayoutOp>(decodeCommand(encodeCommand({.op = all[8]})).op);
  CHECK(set.layout == layout);
}

// ---- a full store ----

namespace {

Outcome run(kj::WaitScope& waitScope, Log& log, Operation op) {
  return log.append({.now = {5, 0}, .op = std::move(op)}).wait(waitScope);
}

// Until the store refuses, and goes on refusing: what earlier changes freed may be room once more.
// Returns how many directories there are then.
uint64_t fill(kj::WaitScope& waitScope, Log& log, uint64_t most) {
  std::string value(16 * kKiB, 'x');
  uint64_t made = 0;
  for (int refused = 0; refused < 3;) {
    REQUIRE(made < most);
    auto outcome = log.append(makeDir(made + 1)).wait(waitScope);
    if (outcome.error == ENOSPC) {
      ++refused;
      continue;
    }
    REQUIRE(outcome.error == 0);
    refused = 0;
    ++made;
    auto set = run(waitScope, log, SetXattrOp{{100 + made}, "user.a", value});
    REQUIRE((set.error == 0 || set.error == ENOSPC));
  }
  return made;
}

// ENOSPC for what grows; what frees something works, and makes room.
void requireUsableWhenFull(kj::WaitScope& waitScope, Journal& journal, Log& log, uint64_t last) {
  CHECK(log.append(makeDir(last + 1)).wait(waitScope).error == ENOSPC);
  CHECK(run(waitScope, log, SetAttrOp{.inode = {101}, .mask = kSetMode, .mode = 0700}).error == 0);
  for (uint64_t i = 1; i <= last; ++i)
    REQUIRE(run(waitScope, log, RmdirOp{kRootInode, "d" + std::to_string(i), {}}).error == 0);
  // A full store is asked again once a second.
  Outcome made{.error = ENOSPC};
  auto giveUp = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (made.error == ENOSPC && std::chrono::steady_clock::now() < giveUp)
    made = log.append(makeDir(last + 1)).wait(waitScope);
  CHECK(made.error == 0);
  CHECK(problemsOf(*journal.store().snapshot()) == std::vector<std::string>{});
}

// A log over a store whose map is soon full.
struct SoonFull {
  TempDir dir;
  kj::AsyncIoContext io = kj::setupAsyncIo();
  std::unique_ptr<Journal> journal;
  LmdbLog log;
  SoonFull() : journal(open(dir)), log(*journal) {}

 private:
  static std::unique_ptr<Journal> open(const TempDir& dir) {
    formatStore(dir.path());
    return Journal::open(dir.path(), soonFull());
  }
};

}  // namespace

TEST_CASE_METHOD(SoonFull, "a full map answers ENOSPC to what grows, and recovers") {
  uint64_t last = fill(io.waitScope, log, 2000);
  requireUsableWhenFull(io.waitScope, *journal, log, last);
}

TEST_CASE("a full disk answers ENOSPC to what grows, survives a kill, and recovers") {
  TempDir mountPoint;
  if (mount("tmpfs", mountPoint.path().c_str(), "tmpfs", 0, "size=12m") != 0)
    SKIP("a small file system cannot be mounted here: " << std::strerror(errno));
  struct Unmount {
    const std::string& path;
    ~Unmount() { umount2(path.c_str(), MNT_DETACH); }
  } unmount{mountPoint.path()};
  formatStore(mountPoint.path());
  auto io = kj::setupAsyncIo();
  auto options = smallJournal();
  options.store.reserveBytes = 2 * kMiB;
  auto journal = Journal::open(mountPoint.path(), options);
  auto log = std::make_unique<LmdbLog>(*journal);
  uint64_t last = fill(io.waitScope, *log, 2000);
  // Others take the rest of the disk.
  mountPoint.write("other", std::string(12 * kMiB, 'o'));
  struct statvfs status{};
  REQUIRE(statvfs(mountPoint.path().c_str(), &status) == 0);
  CHECK(status.f_bavail * status.f_frsize < 64 * kKiB);

  TempDir killed;
  for (auto name : {"data.mdb", "checkpoint", "log"})
    std::filesystem::copy(mountPoint / name, killed / name,
                          std::filesystem::copy_options::recursive);
  CHECK(entries(Journal::open(killed.path(), options)->store()) == last);
  requireUsableWhenFull(io.waitScope, *journal, *log, last);
  log = nullptr;
  journal = nullptr;
  CHECK(entries(Journal::open(mountPoint.path(), options)->store()) == 1);
}

TEST_CASE_METHOD(
    SoonFull, "a store in its reserve takes small batches, each behind a checkpoint of its own") {
  uint64_t last = fill(io.waitScope, log, 2000);
  REQUIRE(last > 3 * kLogReserveBatchMax);
  auto commits = log.commits();
  auto checkpoint = dir.read("checkpoint");
  std::vector<kj::Promise<Outcome>> removals;
  for (uint64_t i = 1; i <= 3 * kLogReserveBatchMax; ++i)
    removals.push_back(
        log.append({.now = {6, 0}, .op = RmdirOp{kRootInode, "d" + std::to_string(i), {}}}));
  for (size_t i = 0; i < removals.size(); ++i) {
    CHECK(removals[i].wait(io.waitScope).error == 0);
    if (i == 0) CHECK(dir.read("checkpoint") != checkpoint);
  }
  CHECK(log.commits() >= commits + 2);  // what the first one has freed is plenty for the others
}

TEST_CASE_METHOD(SoonFull,
                 "a request that was done is answered when it comes again to a full store") {
  SessionId session{run(io.waitScope, log, OpenSessionOp{"client"}).value};
  auto request = makeDir(5000);
  request.session = session;
  request.slot = 0;
  request.sequence = 1;
  auto outcome = log.append(request).wait(io.waitScope);
  REQUIRE(outcome.error == 0);
  fill(io.waitScope, log, 2000);
  CHECK(log.append(request).wait(io.waitScope) == outcome);
}
