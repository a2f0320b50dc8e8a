// libc's file calls, replaced in the test program by ones that tell the DiskRecorder. They make the
// system calls themselves; without a recorder they do nothing else.
// With 64-bit offsets the headers would make each call another name of the one that ends in 64;
// here both are defined.
#undef _FILE_OFFSET_BITS
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <string>

#include "lib/disk_recorder.h"

using trainfs::test::DiskRecorder;

namespace {

bool writesThrough(int fd, int flags = 0) {
  return (fcntl(fd, F_GETFL) & O_DSYNC) != 0 || (flags & (RWF_DSYNC | RWF_SYNC)) != 0;
}

ssize_t told(ssize_t written, int fd, uint64_t offset, const void* bytes, int flags = 0) {
  auto* recorder = DiskRecorder::active();
  if (recorder == nullptr || written <= 0) return written;
  int error = errno;
  recorder->wrote(fd, offset, {static_cast<const char*>(bytes), static_cast<size_t>(written)},
                  writesThrough(fd, flags));
  errno = error;
  return written;
}

ssize_t toldOf(ssize_t written, int fd, uint64_t offset, const iovec* parts, int count,
               int flags = 0) {
  if (DiskRecorder::active() == nullptr || written <= 0) return written;
  std::string bytes;
  for (int i = 0; i < count; ++i)
    bytes.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  return told(written, fd, offset, bytes.data(), flags);
}

// Where a write() that has just returned began.
uint64_t startOf(int fd, ssize_t written) {
  auto end = DiskRecorder::active() == nullptr ? off_t{-1} : lseek(fd, 0, SEEK_CUR);
  return end < 0 ? 0 : static_cast<uint64_t>(end) - static_cast<uint64_t>(written);
}

int openTold(int directory, const char* path, int flags, mode_t mode) {
  auto* recorder = DiskRecorder::active();
  DiskRecorder::Place place;
  bool here = recorder != nullptr && (flags & (O_CREAT | O_TRUNC)) != 0 &&
              recorder->findPlace(directory, path, place);
  bool there = here && recorder->exists(place);
  int fd = static_cast<int>(syscall(SYS_openat, directory, path, flags, mode));
  if (fd < 0 || !here) return fd;
  if (!there)
    recorder->made(place, directory, path);
  else if ((flags & O_TRUNC) != 0)
    recorder->resized(fd, 0);
  return fd;
}

int renameTold(int fromDirectory, const char* from, int toDirectory, const char* to,
               unsigned flags) {
  auto* recorder = DiskRecorder::active();
  DiskRecorder::Place fromPlace, toPlace;
  bool fromHere = recorder != nullptr && recorder->findPlace(fromDirectory, from, fromPlace);
  bool toHere = recorder != nullptr && recorder->findPlace(toDirectory, to, toPlace);
  int result =
      static_cast<int>(syscall(SYS_renameat2, fromDirectory, from, toDirectory, to, flags));
  if (result != 0) return result;
  if (fromHere && toHere) recorder->renamed(fromPlace, toPlace, (flags & RENAME_EXCHANGE) != 0);
  if (fromHere && !toHere) recorder->removed(fromPlace);
  if (!fromHere && toHere) {
    std::fprintf(stderr, "disk recorder: a rename from elsewhere to %s\n", to);
    std::abort();
  }
  return result;
}

int removeTold(int directory, const char* path, int flags) {
  auto* recorder = DiskRecorder::active();
  DiskRecorder::Place place;
  bool here = recorder != nullptr && recorder->findPlace(directory, path, place);
  int result = static_cast<int>(syscall(SYS_unlinkat, directory, path, flags));
  if (result == 0 && here) recorder->removed(place);
  return result;
}

int makeDirectoryTold(int directory, const char* path, mode_t mode) {
  auto* recorder = DiskRecorder::active();
  DiskRecorder::Place place;
  bool here = recorder != nullptr && recorder->findPlace(directory, path, place);
  int result = static_cast<int>(syscall(SYS_mkdirat, directory, path, mode));
  if (result == 0 && here) recorder->made(place, directory, path);
  return result;
}

int linkTold(int fromDirectory, const char* from, int toDirectory, const char* to, int flags) {
  auto* recorder = DiskRecorder::active();
  DiskRecorder::Place fromPlace, toPlace;
  bool here = recorder != nullptr && recorder->findPlace(fromDirectory, from, fromPlace) &&
              recorder->findPlace(toDirectory, to, toPlace);
  int result = static_cast<int>(syscall(SYS_linkat, fromDirectory, from, toDirectory, to, flags));
  if (result == 0 && here) recorder->linked(fromPlace, toPlace);
  return result;
}

int resizeTold(int fd, off_t size) {
  int result = static_cast<int>(syscall(SYS_ftruncate, fd, size));
  if (auto* recorder = DiskRecorder::active(); recorder != nullptr && result == 0)
    recorder->resized(fd, static_cast<uint64_t>(size));
  return result;
}

int allocateTold(int fd, int mode, off_t offset, off_t length) {
  int result = static_cast<int>(syscall(SYS_fallocate, fd, mode, offset, length));
  if (auto* recorder = DiskRecorder::active(); recorder != nullptr && result == 0)
    recorder->allocated(fd, mode, static_cast<uint64_t>(offset), static_cast<uint64_t>(length));
  return result;
}

int syncTold(long call, int fd) {
  auto* recorder = DiskRecorder::active();
  DiskRecorder::SubmittedSync sync;
  if (recorder != nullptr) sync = recorder->syncSubmitted(fd);
  int result = static_cast<int>(syscall(call, fd));
  if (recorder != nullptr && result == 0) recorder->syncCompleted(sync);
  return result;
}

mode_t modeOf(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

#define OPEN_CALL(name)                           \
  int name(const char* path, int flags, ...) {    \
    va_list arguments;                            \
    va_start(arguments, flags);                   \
    mode_t mode = modeOf(flags, arguments);       \
    va_end(arguments);                            \
    return openTold(AT_FDCWD, path, flags, mode); \
  }
#define OPENAT_CALL(name)                                     \
  int name(int directory, const char* path, int flags, ...) { \
    va_list arguments;                                        \
    va_start(arguments, flags);                               \
    mode_t mode = modeOf(flags, arguments);                   \
    va_end(arguments);                                        \
    return openTold(directory, path, flags, mode);            \
  }
OPEN_CALL(open)
OPEN_CALL(open64)
OPENAT_CALL(openat)
OPENAT_CALL(openat64)

int creat(const char* path, mode_t mode) {
  return openTold(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  auto written = syscall(SYS_write, fd, bytes, size);
  return told(written, fd, startOf(fd, written), bytes);
}
ssize_t writev(int fd, const iovec* parts, int count) {
  auto written = syscall(SYS_writev, fd, parts, count);
  return toldOf(written, fd, startOf(fd, written), parts, count);
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return told(syscall(SYS_pwrite64, fd, bytes, size, offset), fd, offset, bytes);
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  return pwrite(fd, bytes, size, offset);
}
ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  return toldOf(syscall(SYS_pwritev, fd, parts, count, offset, 0), fd, offset, parts, count);
}
ssize_t pwritev64(int fd, const iovec* parts, int count, off64_t offset) {
  return pwritev(fd, parts, count, offset);
}
ssize_t pwritev2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  return toldOf(syscall(SYS_pwritev2, fd, parts, count, offset, 0, flags), fd, offset, parts, count,
                flags);
}
ssize_t pwritev64v2(int fd, const iovec* parts, int count, off64_t offset, int flags) {
  return pwritev2(fd, parts, count, offset, flags);
}

int ftruncate(int fd, off_t size) noexcept {
  return resizeTold(fd, size);
}
int ftruncate64(int fd, off64_t size) noexcept {
  return resizeTold(fd, size);
}
int fallocate(int fd, int mode, off_t offset, off_t length) {
  return allocateTold(fd, mode, offset, length);
}
int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
  return allocateTold(fd, mode, offset, length);
}
int posix_fallocate(int fd, off_t offset, off_t length) {
  return allocateTold(fd, 0, offset, length) == 0 ? 0 : errno;
}
int posix_fallocate64(int fd, off64_t offset, off64_t length) {
  return posix_fallocate(fd, offset, length);
}

int rename(const char* from, const char* to) noexcept {
  return renameTold(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat(int fromDirectory, const char* from, int toDirectory, const char* to) noexcept {
  return renameTold(fromDirectory, from, toDirectory, to, 0);
}
int renameat2(int fromDirectory, const char* from, int toDirectory, const char* to,
              unsigned flags) noexcept {
  return renameTold(fromDirectory, from, toDirectory, to, flags);
}
int unlink(const char* path) noexcept {
  return removeTold(AT_FDCWD, path, 0);
}
int unlinkat(int directory, const char* path, int flags) noexcept {
  return removeTold(directory, path, flags);
}
int rmdir(const char* path) noexcept {
  return removeTold(AT_FDCWD, path, AT_REMOVEDIR);
}
int mkdir(const char* path, mode_t mode) noexcept {
  return makeDirectoryTold(AT_FDCWD, path, mode);
}
int mkdirat(int directory, const char* path, mode_t mode) noexcept {
  return makeDirectoryTold(directory, path, mode);
}
int link(const char* from, const char* to) noexcept {
  return linkTold(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int linkat(int fromDirectory, const char* from, int toDirectory, const char* to,
           int flags) noexcept {
  return linkTold(fromDirectory, from, toDirectory, to, flags);
}

int fsync(int fd) {
  return syncTold(SYS_fsync, fd);
}
int fdatasync(int fd) {
  return syncTold(SYS_fdatasync, fd);
}
}
