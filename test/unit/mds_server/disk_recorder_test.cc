// What the disk that forgets may forget, and what not.
#include "lib/disk_recorder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "lib/temp_dir.h"

using namespace trainfs::test;

namespace {

constexpr int kReplays = 600;  // the rarest outcome comes once in twenty

struct Outcomes {
  std::set<std::string> contents;
  bool missing = false;
};

// What becomes of the file over many cuts at n.
Outcomes outcomesOf(const DiskRecorder& recorder, size_t n, const std::string& file) {
  Outcomes outcomes;
  uint64_t seed = testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  Random random(seed);
  for (int i = 0; i < kReplays; ++i) {
    TempDir into;
    recorder.replay(n, random, into.path());
    if (std::filesystem::exists(into / file))
      outcomes.contents.insert(into.read(file));
    else
      outcomes.missing = true;
  }
  return outcomes;
}

int openFile(const std::string& path, int flags = 0) {
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600);
  REQUIRE(fd >= 0);
  return fd;
}

void syncDirectory(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(fsync(fd) == 0);
  close(fd);
}

void writeAt(int fd, off_t offset, const std::string& bytes) {
  REQUIRE(pwrite(fd, bytes.data(), bytes.size(), offset) == static_cast<ssize_t>(bytes.size()));
}

using Contents = std::set<std::string>;

}  // namespace

TEST_CASE("after a cut, what was synced is there and what was not is kept, dropped or torn") {
  TempDir dir;
  std::string old(1024, 'o'), fresh(1024, 'n');
  dir.write("file", old);
  DiskRecorder recorder(dir.path());
  int fd = openFile(dir / "file");
  writeAt(fd, 0, fresh);
  auto unsynced = recorder.operations();
  REQUIRE(fdatasync(fd) == 0);
  auto synced = recorder.operations();
  close(fd);

  auto half = old.substr(512), newHalf = fresh.substr(512);
  CHECK(outcomesOf(recorder, 0, "file").contents == Contents{old});
  CHECK(outcomesOf(recorder, unsynced, "file").contents ==
        Contents{old, fresh, newHalf + half, half + newHalf});
  CHECK(outcomesOf(recorder, synced, "file").contents == Contents{fresh});
}

TEST_CASE("after a cut, a new file is there for certain once its directory was synced") {
  TempDir dir;
  DiskRecorder recorder(dir.path());
  REQUIRE(mkdir((dir / "sub").c_str(), 0700) == 0);
  int fd = openFile(dir / "sub/file");
  writeAt(fd, 0, "content");
  REQUIRE(fsync(fd) == 0);
  close(fd);
  auto dataSynced = recorder.operations();
  syncDirectory(dir / "sub");
  auto nameSynced = recorder.operations();

  auto before = outcomesOf(recorder, dataSynced, "sub/file");
  CHECK(before.missing);
  CHECK(before.contents == Contents{"content"});
  auto after = outcomesOf(recorder, nameSynced, "sub/file");
  CHECK(!after.missing);
  CHECK(after.contents == Contents{"content"});
}

TEST_CASE("after a cut, a renamed file has replaced the old one or has not") {
  TempDir dir;
  dir.write("file", "old");
  DiskRecorder recorder(dir.path());
  int fd = openFile(dir / "file.new");
  writeAt(fd, 0, "new");
  REQUIRE(fsync(fd) == 0);
  close(fd);
  REQUIRE(rename((dir / "file.new").c_str(), (dir / "file").c_str()) == 0);
  auto renamed = recorder.operations();
  REQUIRE(unlink((dir / "file").c_str()) == 0);
  syncDirectory(dir.path());
  auto removed = recorder.operations();

  auto outcomes = outcomesOf(recorder, renamed, "file");
  CHECK(outcomes.contents == Contents{"old", "new"});
  CHECK(!outcomes.missing);
  CHECK(outcomesOf(recorder, removed, "file").contents.empty());
}

TEST_CASE("after a cut, sizes have changed in order") {
  TempDir dir;
  dir.write("file", "");
  DiskRecorder recorder(dir.path());
  int fd = openFile(dir / "file");
  REQUIRE(ftruncate(fd, 4) == 0);
  REQUIRE(fallocate(fd, 0, 0, 6) == 0);
  REQUIRE(ftruncate(fd, 2) == 0);
  auto grown = recorder.operations();
  REQUIRE(fsync(fd) == 0);
  auto synced = recorder.operations();
  close(fd);
  std::set<size_t> sizes;
  for (auto& content : outcomesOf(recorder, grown, "file").contents) sizes.insert(content.size());
  CHECK(sizes == std::set<size_t>{0, 2, 4, 6});
  CHECK(outcomesOf(recorder, synced, "file").contents == Contents{std::string(2, '\0')});
}

TEST_CASE("after a cut, a write through O_DSYNC is there and its neighbours need not be") {
  TempDir dir;
  dir.write("file", "....");
  DiskRecorder recorder(dir.path());
  int lazy = openFile(dir / "file"), through = openFile(dir / "file", O_DSYNC);
  writeAt(lazy, 0, "ab");
  writeAt(through, 2, "cd");
  close(lazy);
  close(through);
  CHECK(outcomesOf(recorder, recorder.operations(), "file").contents == Contents{"..cd", "abcd"});
}

TEST_CASE("after a cut, what was reported by hand counts like a system call") {
  TempDir dir;
  dir.write("file", "old");
  DiskRecorder recorder(dir.path());
  int fd = openFile(dir / "file");
  recorder.wrote(fd, 0, "new");
  auto early = recorder.syncSubmitted(fd);
  recorder.wrote(fd, 3, "er");
  recorder.syncCompleted(early);
  auto outcomes = outcomesOf(recorder, recorder.operations(), "file");
  CHECK(outcomes.contents.contains("new"));
  CHECK(outcomes.contents.contains("newer"));
  CHECK(!outcomes.contents.contains("old"));
  recorder.syncCompleted(recorder.syncSubmitted(fd));
  CHECK(outcomesOf(recorder, recorder.operations(), "file").contents == Contents{"newer"});
  close(fd);
}

TEST_CASE("what a killed process left unsynced is in the page cache, and a later cut may lose it") {
  TempDir dir, killed;
  dir.write("file", "old");
  DiskRecorder recorder(dir.path());
  int fd = openFile(dir / "file");
  writeAt(fd, 0, "new");
  auto written = recorder.operations();
  REQUIRE(mkdir((dir / "sub").c_str(), 0700) == 0);
  close(openFile(dir / "sub/fresh"));
  auto made = recorder.operations();
  writeAt(fd, 0, "never");
  close(fd);
  REQUIRE(made > written);
  recorder.kill(made, killed.path());
  CHECK(killed.read("file") == "new");
  CHECK(std::filesystem::exists(killed / "sub/fresh"));

  // The second life goes on from there.
  fd = openFile(killed / "file");
  writeAt(fd, 3, "er");
  auto extended = recorder.operations();
  CHECK(extended == made + 1);
  CHECK(outcomesOf(recorder, written, "file").contents == Contents{"old", "new"});
  auto outcomes = outcomesOf(recorder, extended, "file").contents;
  CHECK(outcomes.contains("old"));
  CHECK(outcomes.contains("newer"));
  CHECK(outcomes.contains("new"));
  CHECK(!outcomes.contains("never"));
  CHECK(outcomesOf(recorder, extended, "sub/fresh").missing);

  REQUIRE(fdatasync(fd) == 0);  // of what the first life wrote, too
  close(fd);
  CHECK(outcomesOf(recorder, recorder.operations(), "file").contents == Contents{"newer"});
  syncDirectory(killed / "sub");
  CHECK(!outcomesOf(recorder, recorder.operations(), "sub/fresh").missing);
}
