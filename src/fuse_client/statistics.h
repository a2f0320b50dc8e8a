// What a mount has done since it was made: one object per mount, written by every thread, read by
// whoever asks (tfs stats, metrics). Counting costs a few relaxed additions and no lock; a reader
// sees each number on its own, not all of one moment.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace trainfs::client {

// Kinds of requests of the kernel; kRequestNames has their names.
enum class RequestKind : uint8_t {
  kLookup,
  kGetattr,
  kSetattr,
  kReadlink,
  kMknod,
  kMkdir,
  kSymlink,
  kLink,
  kUnlink,
  kRmdir,
  kRename,
  kCreate,
  kOpen,
  kRelease,
  kFlush,
  kFsync,
  kRead,
  kWrite,
  kFallocate,
  kOpendir,
  kReaddir,
  kReaddirplus,
  kReleasedir,
  kGetxattr,
  kSetxattr,
  kListxattr,
  kRemovexattr,
  kStatfs,
  kGetlk,
  kSetlk,
  kFlock,
  kOther,
};
inline constexpr size_t kRequestKinds = static_cast<size_t>(RequestKind::kOther) + 1;
extern const std::array<std::string_view, kRequestKinds> kRequestNames;

// How often something happened and how long it took. Bucket n counts what took less than 2^n
// microseconds and not less than half of that; the last one also all that took longer.
struct alignas(64) Timer {
  static constexpr size_t kBuckets = 26;  // the last from half a minute on

  void add(std::chrono::nanoseconds took, bool failed);

  std::atomic<uint64_t> count{0}, errors{0}, nanoseconds{0}, longest{0};
  std::array<std::atomic<uint64_t>, kBuckets> buckets{};
};

struct Statistics {
  std::chrono::system_clock::time_point since = std::chrono::system_clock::now();
  std::array<Timer, kRequestKinds> requests;  // of the kernel, until they are answered
  Timer mdsQuestions, mdsChanges;             // calls to the MDS, until they are answered
  std::atomic<uint64_t> mdsResent{0};         // times that one of them was sent again
  std::atomic<uint64_t> lockWaits{0};         // requests for locks that wait, at present
  std::atomic<uint64_t> mdsConnections{0};    // times that a session was opened or resumed
  std::atomic<uint64_t> bytesRead{0}, bytesWritten{0};  // by the kernel; not what its cache had
  std::atomic<uint64_t> dataFrames{0};                  // requests to OSTs
  std::atomic<uint64_t> dataRerouted{0};                // times that one of them was sent again

  Timer& of(RequestKind kind) { return requests[static_cast<size_t>(kind)]; }

  // Lines of words, for tfs (docs/format-mount.md):
  //   counter NAME VALUE
  //   timer NAME COUNT ERRORS NANOSECONDS LONGEST [BUCKET:COUNT]...
  std::string text() const;
};

}  // namespace trainfs::client
