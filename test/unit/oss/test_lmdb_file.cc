#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <future>

#include "lib/seed.h"
#include "lib/temp_dir.h"
#include "lmdb_file.h"
#include "oss/object_index.h"

using namespace trainfs;
using namespace trainfs::oss;
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kObjects = 400;
constexpr unsigned kChildSeconds = 60;

ObjectId object(uint64_t number) {
  return {InodeId{number + 2}, 1, 0, 0};
}

void fill(const std::string& directory) {
  ObjectIndex index(directory, directory + ".note");
  for (uint64_t number = 0; number < kObjects; ++number) {
    IndexChange change{.kind = IndexChange::Kind::kClean, .object = object(number)};
    change.record = {.version = 1, .sizeBytes = 100 * kBlockBytes};
    change.chunks[0] = std::vector<uint64_t>(100, number);
    std::promise<int> done;
    index.change(std::move(change), [&](int error) { done.set_value(error); });
    REQUIRE(done.get_future().get() == 0);
  }
}

// In a child: what it says goes into the pipe, and it ends in any case.
void beginChild(const int (&out)[2]) {
  dup2(out[1], STDERR_FILENO);
  for (int signal : {SIGBUS, SIGSEGV, SIGABRT, SIGALRM}) ::signal(signal, SIG_DFL);
  nameLostPages();
  alarm(kChildSeconds);
}

// The child's status, and all that it wrote into the pipe.
int await(pid_t child, const int (&out)[2], std::string& said) {
  close(out[1]);
  char piece[4096];
  ssize_t got;
  said.clear();
  while ((got = read(out[0], piece, sizeof piece)) > 0) said.append(piece, got);
  close(out[0]);
  int status;
  waitpid(child, &status, 0);
  return status;
}

// In a child, which damage may end: 0 all there, 1 refused in words, 2 something is not readable,
// else a signal. What it said in `said`.
int openInChild(const std::string& directory, std::string& said) {
  int out[2];
  REQUIRE(pipe(out) == 0);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    beginChild(out);
    int outcome = 0;
    try {
      ObjectIndex index(directory, directory + ".note");
      ObjectIndex::Reader reader(index);
      for (uint64_t number = 0; number < kObjects; ++number)
        if (!reader.find(object(number))) outcome = 2;
    } catch (const std::exception& error) {
      (void)!write(STDERR_FILENO, error.what(), strlen(error.what()));
      outcome = 1;
    }
    _exit(outcome);
  }
  int status = await(child, out, said);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("an index that is whole, or not there yet, is fine") {
  test::TempDir directory;
  CHECK(checkLmdbFile(directory / "index").empty());
  fill(directory / "index");
  CHECK(checkLmdbFile(directory / "index").empty());
}

TEST_CASE("an index that was cut off is refused by name, wherever the cut is") {
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  test::Random random(seed);
  test::TempDir directory;
  fill(directory / "index");
  auto file = directory / "index/data.mdb";
  uint64_t whole = fs::file_size(file);
  REQUIRE(whole > 100 * 4096);
  fs::copy_file(file, directory / "kept");
  for (int round = 0; round < 60; ++round) {
    fs::copy_file(directory / "kept", file, fs::copy_options::overwrite_existing);
    uint64_t left = random.between(round < 10 ? whole - 3 * 4096 : 8192, whole - 1);
    fs::resize_file(file, left);
    INFO("cut at " << left << " of " << whole);
    auto wrong = checkLmdbFile(directory / "index");
    std::string said;
    int outcome = openInChild(directory / "index", said);
    INFO(said);
    if (wrong.empty()) {
      CHECK(outcome == 0);  // what is missing was free
    } else {
      CHECK(wrong.starts_with(file + ": cut off"));
      CHECK(outcome == 1);
    }
  }
}

TEST_CASE("an index whose last page is there in part is cut off, though it can be read") {
  test::TempDir directory;
  fill(directory / "index");
  auto file = directory / "index/data.mdb";
  uint64_t whole = fs::file_size(file);
  fs::copy_file(file, directory / "kept");
  for (uint64_t missing : {1, 19, 512, 4095}) {
    fs::copy_file(directory / "kept", file, fs::copy_options::overwrite_existing);
    fs::resize_file(file, whole - missing);
    CHECK(checkLmdbFile(directory / "index").starts_with(file + ": cut off"));
  }
}

TEST_CASE("a page that is lost while the index is open is named before the process ends") {
  test::TempDir directory;
  fill(directory / "index");
  auto file = directory / "index/data.mdb";
  int out[2];
  REQUIRE(pipe(out) == 0);
  pid_t child = fork();
  if (child == 0) {
    beginChild(out);
    ObjectIndex index(directory / "index", directory / "note");
    ObjectIndex::Reader reader(index);
    fs::resize_file(file, 8192);
    for (uint64_t number = 0; number < kObjects; ++number) (void)reader.find(object(number)).ok();
    _exit(0);
  }
  std::string said;
  int status = await(child, out, said);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS));
  CHECK(said.find("a page of " + file) != said.npos);
}

// A damaged page may have LMDB write over the heap, and the C library finds that out.
TEST_CASE("an abort names the index that may be damaged, one from outside does not") {
  test::TempDir directory;
  fill(directory / "index");
  auto dieBy = [&](auto end, auto whenReady) {
    int out[2];
    REQUIRE(pipe(out) == 0);
    pid_t child = fork();
    if (child == 0) {
      beginChild(out);
      ObjectIndex index(directory / "index", directory / "note");
      // By calls that no sanitizer sees: it is not to be in one of its own when the signal comes.
      syscall(SYS_write, STDERR_FILENO, "!", 1);
      end();
      _exit(0);
    }
    char ready;
    REQUIRE(read(out[0], &ready, 1) == 1);
    whenReady(child);
    std::string said;
    int status = await(child, out, said);
    CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
    return said;
  };
  auto file = directory / "index/data.mdb";
  auto own = dieBy([] { std::abort(); }, [](pid_t) {});
  CHECK(own.find(file) != own.npos);
  auto sent = dieBy(
      [] {
        for (;;) syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr);
      },
      [](pid_t child) { kill(child, SIGABRT); });
  CHECK(sent.find(file) == sent.npos);
}

// The thread sanitizer looks at each byte that a damaged page says to copy, before the copy does:
// of 2^64 that takes longer than anybody waits, where a plain process is lost at once.
#if !__has_feature(thread_sanitizer)
TEST_CASE(
    "flipped bits of an index are read, refused or named, and never go on in silence for ever") {
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  test::Random random(seed);
  test::TempDir directory;
  fill(directory / "index");
  auto file = directory / "index/data.mdb";
  std::string kept = directory.read("index/data.mdb");
  for (int round = 0; round < 60; ++round) {
    auto damaged = kept;
    // The heads of pages are where it hurts.
    size_t page = random.between(0, kept.size() / 4096 - 1) * 4096;
    size_t at = round % 2 ? page + random.between(0, 40) : random.between(0, kept.size() - 1);
    damaged[at] ^= 1 << random.between(0, 7);
    directory.write("index/data.mdb", damaged);
    std::string said;
    int outcome = openInChild(directory / "index", said);
    INFO("byte " << at << ": outcome " << outcome << ": " << said);
    CHECK((outcome <= 2 || said.find(file) != said.npos));
  }
}
#endif

TEST_CASE("an index of a newer format is refused by name and left as it is") {
  test::TempDir directory;
  fill(directory / "index");
  // LMDB puts a value right behind its key. Pages that are no longer used have it, too.
  std::string newer = directory.read("index/data.mdb");
  const std::string known("format\1\0\0\0", 10), next("format\2\0\0\0", 10);
  size_t places = 0;
  for (size_t at = 0; (at = newer.find(known, at)) != newer.npos; ++places)
    newer.replace(at, next.size(), next);
  REQUIRE(places > 0);
  directory.write("index/data.mdb", newer);
  std::string said;
  CHECK(openInChild(directory / "index", said) == 1);
  CHECK(said ==
        "object index " + directory / "index" + " has format version 2, only 1 is known here");
  CHECK(directory.read("index/data.mdb") == newer);
}
