// The log's files: segments of one size, written once when they are made and then used again and
// again, so that a write never changes a file's size and making it durable is one flush.
// append() and sync() belong to the log's writer; cut() may be called on another thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mds/log_record.h"

namespace trainfs::mds {

struct SegmentLogOptions {
  uint64_t segmentBytes = 8 * kMiB;
  // There from the start, so that a full disk does not stop the log.
  size_t segmentsLeast = 4;
  // Beyond, append() waits for cut().
  size_t segmentsMax = 32;
  // Called by append() when at most one of segmentsLeast is free: time for a checkpoint, and cut().
  std::function<void()> needsCut = [] {};
};

class SegmentLog {
 public:
  // `directory` is the log's own and is made if it is not there. Throws kj::Exception that names
  // the file: damaged, of a newer version, no room.
  SegmentLog(std::string directory, const SegmentLogOptions& options);
  ~SegmentLog();
  SegmentLog(const SegmentLog&) = delete;
  SegmentLog& operator=(const SegmentLog&) = delete;

  // Before the first append(): gives every record with commands above `appliedIndex`, in order.
  // Bytes after the last sound record are a write that was under way when the power failed. Throws
  // kj::Exception naming file and offset when a record is missing before the last one.
  void replay(uint64_t appliedIndex, const std::function<void(const LogRecord&)>& visit);

  // Writes a record; durable after sync(). Throws kj::Exception when the disk refuses: what is in
  // the log is unknown then, and only a restart finds out.
  void append(const LogRecord& record);
  void sync();

  // Commands up to this index are needed no more.
  void cut(uint64_t appliedIndex);

 private:
  struct Segment {
    std::string path;
    int fd = -1;
    uint64_t sequence = 0;  // 0: never used
    uint64_t seed = 0;
    uint64_t lastIndex = 0;  // of the commands in it
    bool free = true;
  };
  void openSegments();
  void makeSegment();
  void startSegment();
  void takeFree();

  const std::string directory_;
  const SegmentLogOptions options_;
  std::mutex mutex_;  // over what follows, to current_; the writer reads what only it changes
  std::condition_variable cut_;
  std::vector<std::unique_ptr<Segment>> segments_;
  Segment* current_ = nullptr;

  uint64_t at_ = 0;        // in the current one
  uint64_t sequence_ = 0;  // the last one given
};

}  // namespace trainfs::mds
