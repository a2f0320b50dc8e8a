#include "mds/segment_log.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>

#include "mds/durable_files.h"

namespace trainfs::mds {
namespace {

uint64_t randomSeed() {
  uint64_t seed;
  ssize_t got;
  KJ_SYSCALL(got = getrandom(&seed, sizeof seed, 0));
  KJ_ASSERT(got == sizeof seed);
  return seed;
}

constexpr std::string_view kUnfinished = ".new";
constexpr uint64_t kFirstName = 1000;  // names of one length, in the order in which they were made
constexpr auto kRoomPause = std::chrono::seconds(1);

}  // namespace

SegmentLog::SegmentLog(std::string directory, const SegmentLogOptions& options)
    : directory_(std::move(directory)), options_(options) {
  if (mkdir(directory_.c_str(), 0700) == 0)
    syncDirectory(std::filesystem::path(directory_).parent_path());
  else
    KJ_REQUIRE(errno == EEXIST, "the log's directory cannot be made", directory_, errno);
  openSegments();
  while (segments_.size() < options_.segmentsLeast) makeSegment();
}

SegmentLog::~SegmentLog() {
  for (auto& segment : segments_)
    if (segment->fd >= 0) close(segment->fd);
}

void SegmentLog::openSegments() {
  for (auto& entry : std::filesystem::directory_iterator(directory_)) {
    auto segment = std::make_unique<Segment>();
    segment->path = entry.path();
    auto name = entry.path().filename().string();
    bool ours = std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!ours) continue;  // such as one that was not finished: makeSegment() writes it anew
    KJ_SYSCALL(segment->fd = ::open(segment->path.c_str(), O_RDWR | O_CLOEXEC), segment->path);
    auto head = readAt(segment->fd, 0, kSegmentHeadBytes, segment->path);
    KJ_REQUIRE(head.size() == kSegmentHeadBytes, "a segment of the log is cut off", segment->path);
    if (auto decoded = decodeSegmentHead(head, segment->path)) {
      segment->sequence = decoded->sequence;
      segment->seed = decoded->seed;
      segment->free = false;
      sequence_ = std::max(sequence_, decoded->sequence);
    }
    segments_.push_back(std::move(segment));
  }
  std::sort(segments_.begin(), segments_.end(), [](auto& a, auto& b) { return a->path < b->path; });
  syncDirectory(directory_);  // whoever made the last one may have been killed before that
}

// Written with zeros, not only allocated: writing into it must not change the file system's own
// records.
void SegmentLog::makeSegment() {
  auto segment = std::make_unique<Segment>();
  uint64_t name = kFirstName;
  if (!segments_.empty())
    name = std::stoull(std::filesystem::path(segments_.back()->path).filename()) + 1;
  segment->path = directory_ + "/" + std::to_string(name);
  auto fresh = segment->path + std::string(kUnfinished);
  KJ_SYSCALL(segment->fd = ::open(fresh.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
             fresh);
  KJ_ON_SCOPE_FAILURE({
    close(segment->fd);
    unlink(fresh.c_str());
  });
  writeAt(segment->fd, 0, std::string(options_.segmentBytes, '\0'), fresh);
  syncData(segment->fd, fresh);
  KJ_SYSCALL(rename(fresh.c_str(), segment->path.c_str()), fresh);
  syncDirectory(directory_);
  std::lock_guard lock(mutex_);
  segments_.push_back(std::move(segment));
}

void SegmentLog::replay(uint64_t appliedIndex, const std::function<void(const LogRecord&)>& visit) {
  std::map<uint64_t, Segment*> inOrder;
  for (auto& segment : segments_)
    if (!segment->free) inOrder[segment->sequence] = segment.get();
  uint64_t next = appliedIndex + 1;
  std::string tornAt;  // the last place where a segment held no record any more
  for (auto& [sequence, segment] : inOrder) {
    struct stat status{};
    KJ_SYSCALL(fstat(segment->fd, &status), segment->path);
    auto content = readAt(segment->fd, 0, status.st_size, segment->path);
    LogRecordReader reader(content, segment->seed);
    while (auto record = reader.next()) {
      segment->lastIndex = std::max(segment->lastIndex, record->lastIndex());
      if (record->lastIndex() < next) continue;
      auto where = reader.skippedAt()
                       ? segment->path + ", offset " + std::to_string(*reader.skippedAt())
                   : tornAt.empty() ? segment->path
                                    : tornAt;
      KJ_REQUIRE(record->firstIndex <= next,
                 "the log is damaged: commands are missing that later ones followed", where, next,
                 record->firstIndex);
      visit(*record);
      next = record->lastIndex() + 1;
    }
    if (reader.skippedAt())
      tornAt = segment->path + ", offset " + std::to_string(*reader.skippedAt());
  }
}

void SegmentLog::append(const LogRecord& record) {
  size_t bytes = 0;
  for (auto command : record.commands) bytes += command.size();
  size_t needed = logRecordBytes(record.commands.size(), bytes);
  KJ_REQUIRE(kSegmentHeadBytes + needed <= options_.segmentBytes, "a record longer than a segment",
             needed);
  if (current_ == nullptr || at_ + needed > options_.segmentBytes) startSegment();
  writeAt(current_->fd, at_, encodeLogRecord(record, current_->seed), current_->path);
  at_ += needed;
  std::lock_guard lock(mutex_);
  current_->lastIndex = record.lastIndex();
}

void SegmentLog::sync() {
  if (current_ != nullptr) syncData(current_->fd, current_->path);
}

void SegmentLog::startSegment() {
  sync();
  takeFree();
  current_->sequence = ++sequence_;
  current_->seed = randomSeed();
  writeAt(current_->fd, 0,
          encodeSegmentHead({.sequence = current_->sequence, .seed = current_->seed}),
          current_->path);
  at_ = kSegmentHeadBytes;
}

// Makes a free segment the current one; waits for a cut where there is none and no room for more.
void SegmentLog::takeFree() {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto isFree = [](auto& segment) { return segment->free; };
    auto found = std::find_if(segments_.begin(), segments_.end(), isFree);
    auto freeOnes = std::count_if(found, segments_.end(), isFree);
    lock.unlock();
    if (freeOnes <= 2) options_.needsCut();
    bool made = freeOnes == 0 && segments_.size() < options_.segmentsMax &&
                kj::runCatchingExceptions([&] { makeSegment(); }) == nullptr;
    lock.lock();
    if (freeOnes > 0) {
      current_ = found->get();
      current_->free = false;
      return;
    }
    if (!made)
      cut_.wait_for(lock, kRoomPause,
                    [&] { return std::any_of(segments_.begin(), segments_.end(), isFree); });
  }
}

void SegmentLog::cut(uint64_t appliedIndex) {
  std::lock_guard lock(mutex_);
  for (auto& segment : segments_)
    if (segment.get() != current_ && segment->lastIndex <= appliedIndex) segment->free = true;
  cut_.notify_all();
}

}  // namespace trainfs::mds
