#include "fuse_client/statistics.h"

#include <algorithm>
#include <bit>

namespace trainfs::client {

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

void append(std::string& text, std::string_view name, const Timer& timer) {
  auto number = [&](uint64_t value) { text.append(" ").append(std::to_string(value)); };
  text.append("timer ").append(name);
  number(timer.count.load(kRelaxed));
  number(timer.errors.load(kRelaxed));
  number(timer.nanoseconds.load(kRelaxed));
  number(timer.longest.load(kRelaxed));
  for (size_t i = 0; i < Timer::kBuckets; ++i) {
    auto count = timer.buckets[i].load(kRelaxed);
    if (count != 0) text += " " + std::to_string(i) + ":" + std::to_string(count);
  }
  text += "\n";
}

void append(std::string& text, std::string_view name, uint64_t value) {
  text.append("counter ").append(name).append(" ").append(std::to_string(value)).append("\n");
}

}  // namespace

const std::array<std::string_view, kRequestKinds> kRequestNames = {
    "lookup",      "getattr",    "setattr",  "readlink", "mknod",     "mkdir",       "symlink",
    "link",        "unlink",     "rmdir",    "rename",   "create",    "open",        "release",
    "flush",       "fsync",      "read",     "write",    "fallocate", "opendir",     "readdir",
    "readdirplus", "releasedir", "getxattr", "setxattr", "listxattr", "removexattr", "statfs",
    "getlk",       "setlk",      "flock",    "other"};

void Timer::add(std::chrono::nanoseconds took, bool failed) {
  auto elapsed = static_cast<uint64_t>(std::max<int64_t>(took.count(), 0));
  count.fetch_add(1, kRelaxed);
  if (failed) errors.fetch_add(1, kRelaxed);
  nanoseconds.fetch_add(elapsed, kRelaxed);
  size_t bucket = std::bit_width(elapsed / 1000);
  buckets[std::min(bucket, kBuckets - 1)].fetch_add(1, kRelaxed);
  auto before = longest.load(kRelaxed);
  while (before < elapsed && !longest.compare_exchange_weak(before, elapsed, kRelaxed)) {
  }
}

std::string Statistics::text() const {
  std::string text;
  auto started = std::chrono::duration_cast<std::chrono::seconds>(since.time_since_epoch());
  append(text, "since", static_cast<uint64_t>(started.count()));
  append(text, "bytes.read", bytesRead.load(kRelaxed));
  append(text, "bytes.written", bytesWritten.load(kRelaxed));
  append(text, "mds.resent", mdsResent.load(kRelaxed));
  append(text, "mds.connections", mdsConnections.load(kRelaxed));
  append(text, "lock.waits", lockWaits.load(kRelaxed));
  append(text, "ost.requests", dataFrames.load(kRelaxed));
  append(text, "ost.resent", dataRerouted.load(kRelaxed));
  append(text, "mds.questions", mdsQuestions);
  append(text, "mds.changes", mdsChanges);
  for (size_t i = 0; i < kRequestKinds; ++i)
    append(text, "request." + std::string(kRequestNames[i]), requests[i]);
  return text;
}

}  // namespace trainfs::client
