#include "lmdb_file.h"

#include <fcntl.h>
#include <lmdb.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "trainfs/logging.h"

namespace trainfs {

namespace {

// The beginning of a meta page, of which there are two, as LMDB 0.9 lays it out on 64-bit machines.
struct MetaPage {
  uint64_t pageNumber;
  uint16_t pad, flags, lower, upper;
  uint32_t magic, version;
  uint64_t address, mapBytes;
  struct {
    uint32_t pad;  // of the first one: bytes of a page
    uint16_t flags, depth;
    uint64_t branchPages, leafPages, overflowPages, entries, root;
  } tables[2];
  uint64_t lastPage, transaction;
};
static_assert(sizeof(MetaPage) == 152);
constexpr uint32_t kMagic = 0xBEEFC0DE;
constexpr uint32_t kPageBytesMax = 64 * 1024;

struct Extent {
  uint64_t claimedBytes = 0;  // that the newest state says to have pages in; 0: nothing we can read
  uint64_t pageBytes = kPageBytesMax;
};

Extent extentOf(int fd) {
  MetaPage first{}, second{};
  if (pread(fd, &first, sizeof first, 0) != sizeof first || first.magic != kMagic) return {};
  uint32_t pageBytes = first.tables[0].pad;
  if (pageBytes < sizeof first || pageBytes > kPageBytesMax) return {};
  if (pread(fd, &second, sizeof second, pageBytes) != sizeof second)
    return {2 * pageBytes, pageBytes};
  auto& newest = second.transaction > first.transaction ? second : first;
  return {(newest.lastPage + 1) * pageBytes, pageBytes};
}

// Touches every page that a reader can come to.
bool readAll(const std::string& directory) {
  MDB_env* environment = nullptr;
  MDB_txn* transaction = nullptr;
  if (mdb_env_create(&environment) != 0) return false;
  if (mdb_env_open(environment, directory.c_str(), MDB_RDONLY | MDB_NOLOCK, 0600) != 0)
    return false;
  if (mdb_txn_begin(environment, nullptr, MDB_RDONLY, &transaction) != 0) return false;
  MDB_dbi unnamed;
  if (mdb_dbi_open(transaction, nullptr, 0, &unnamed) != 0) return false;
  volatile char touched = 0;
  for (MDB_dbi table : {MDB_dbi{0}, unnamed}) {  // 0: the pages that are free
    MDB_cursor* cursor = nullptr;
    if (mdb_cursor_open(transaction, table, &cursor) != 0) return false;
    MDB_val key, value;
    int code;
    while ((code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
      auto* bytes = static_cast<const char*>(value.mv_data);
      for (size_t at = 0; at < value.mv_size; at += 512) touched = bytes[at];
      if (value.mv_size > 0) touched = bytes[value.mv_size - 1];
    }
    if (code != MDB_NOTFOUND) return false;
  }
  (void)touched;
  return true;
}

// A child can be lost to what it finds.
bool readableByAChild(const std::string& directory) {
  pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    prctl(PR_SET_DUMPABLE, 0);
    for (int signal : {SIGBUS, SIGSEGV, SIGABRT}) ::signal(signal, SIG_DFL);
    _exit(readAll(directory) ? 0 : 1);
  }
  int status;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void say(const char* text) {
  (void)!write(STDERR_FILENO, text, strlen(text));
}

// Calls visit(begin, end, path) for each file that is mapped. Async-signal-safe.
template <typename Visit>
void visitMappedFiles(Visit visit) {
  static char line[4352];
  int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  size_t length = 0;
  char byte;
  while (read(fd, &byte, 1) == 1) {
    if (byte != '\n') {
      if (length + 1 < sizeof line) line[length++] = byte;
      continue;
    }
    line[length] = '\0';
    length = 0;
    char* rest;
    uintptr_t begin = strtoull(line, &rest, 16);
    uintptr_t end = *rest == '-' ? strtoull(rest + 1, nullptr, 16) : 0;
    if (const char* path = strchr(line, '/')) visit(begin, end, path);
  }
  close(fd);
}

struct sigaction whenPageIsLost, whenAddressIsBad, whenAborted;  // before ours

// What ends the process after a handler: the access, which is repeated, or the signal once more if
// somebody has sent it, who accesses nothing.
void die(int signal, const siginfo_t* info, const struct sigaction& before) {
  sigaction(signal, &before, nullptr);
  if (info->si_code <= 0) raise(signal);
}

void lostPage(int signal, siginfo_t* info, void*) {
  if (info->si_code <= 0) return die(signal, info, whenPageIsLost);
  auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  bool named = false;
  visitMappedFiles([&](uintptr_t begin, uintptr_t end, const char* path) {
    if (address < begin || address >= end) return;
    say("a page of ");
    say(path);
    named = true;
  });
  if (!named) say("a page of a mapped file");
  say(" cannot be read: the file is damaged or was cut off, or the disk failed (SIGBUS)\n");
  die(signal, info, whenPageIsLost);
}

void nameSuspects(const char* what) {
  visitMappedFiles([&](uintptr_t, uintptr_t, const char* path) {
    const char* name = strrchr(path, '/');
    if (strcmp(name, "/data.mdb") != 0) return;
    say(what);
    say(path);
    say("\n");
  });
}

void badAddress(int signal, siginfo_t* info, void*) {
  if (info->si_code > 0)
    nameSuspects(
        "a bad address was used (SIGSEGV); if it was LMDB that did, this file is damaged: ");
  die(signal, info, whenAddressIsBad);
}

// abort(3), the sender is this process, is also what the C library does when it finds its heap
// overwritten.
void aborted(int signal, siginfo_t* info, void*) {
  if (info->si_pid == getpid())
    nameSuspects(
        "the process gives up (SIGABRT); if LMDB wrote over its memory, this file is damaged: ");
  die(signal, info, whenAborted);
}

void assertionFailed(MDB_env* environment, const char* what) {
  const char* directory = "?";
  mdb_env_get_path(environment, &directory);
  spdlog::critical("{}/data.mdb is damaged: LMDB: {}", directory, what);
}

}  // namespace

std::string checkLmdbFile(const std::string& directory) {
  std::string path = directory + "/data.mdb";
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? "" : path + ": " + std::strerror(errno);
  struct stat status{};
  int failed = fstat(fd, &status);
  auto [claimed, pageBytes] = failed == 0 ? extentOf(fd) : Extent{};
  uint64_t there = status.st_size;
  close(fd);
  if (failed != 0) return path + ": " + std::strerror(errno);
  if (there >= claimed) return "";
  // The last pages of a transaction may be free again and never written. Whether one of those that
  // are missing is in use, only reading all of them shows; but the rest of a page that is there in
  // part reads as zeros, and the list of free pages would be believed with zeros in it.
  bool wholePages = there % pageBytes == 0;
  if (wholePages && claimed - there <= claimed / 2 && readableByAChild(directory)) return "";
  return path + ": cut off: it has " + std::to_string(there) + " bytes, and pages up to byte " +
         std::to_string(claimed) + " are in use";
}

void nameAssertions(MDB_env* environment) {
  mdb_env_set_assert(environment, assertionFailed);
}

void nameLostPages() {
  struct sigaction action{};
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  action.sa_sigaction = lostPage;
  sigaction(SIGBUS, &action, &whenPageIsLost);
  action.sa_sigaction = badAddress;
  sigaction(SIGSEGV, &action, &whenAddressIsBad);
  action.sa_sigaction = aborted;
  sigaction(SIGABRT, &action, &whenAborted);
}

}  // namespace trainfs
