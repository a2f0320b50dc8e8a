// One request of the kernel, until it is answered: exactly once, from any thread.
#pragma once

#define FUSE_USE_VERSION 318
#include <fuse_lowlevel.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "fuse_client/coherence.h"
#include "fuse_client/in_flight.h"
#include "fuse_client/inodes.h"
#include "fuse_client/places.h"
#include "fuse_client/statistics.h"
#include "trainfs/file_lock.h"

namespace trainfs::client {

class Client;

class Request : public std::enable_shared_from_this<Request>, public InFlight::Link {
 public:
  // `interruptible`: the caller may be killed while it waits, once the handler has returned.
  // Nothing that the request still does after that may use memory of the kernel's ring, or a
  // handle.
  static std::shared_ptr<Request> begin(fuse_req_t request, bool interruptible = true);
  // To be called after each handler, on its thread: until then it reads what came with the request,
  // which must not be answered by another thread.
  static void handlerReturned();
  Request(fuse_req_t request, Client& client) : request_(request), client_(client) {}
  ~Request();

  Client& client() { return client_; }
  int caller() const { return caller_; }  // thread id; 0: the kernel itself
  bool answered() const { return answered_.load(std::memory_order_acquire); }

  // For a request that waits for other callers, and so must end at any signal: what to do then. An
  // answer must come of it. In the handler.
  void onSignal(std::function<void()> end) { end_ = std::move(end); }
  bool endsAtSignal() const { return end_ != nullptr; }
  void signal() { end_(); }
  // What InterruptWatch has seen of its caller.
  struct Seen {
    bool asleep = false, signal = false;
  };
  Seen& seen() { return seen_; }

  // Answers EINTR, for a caller that is being killed.
  void giveUp();
  // Runs `hook` before that, so that what the caller leaves behind is ordered before all that comes
  // later. False: it was given up already.
  bool onGiveUp(std::function<void()> hook);
  // Runs `start` after the changes whose callers were killed, or not at all if this one is killed
  // meanwhile; once. The fate is to be held until it is known whether the change happened.
  using Fate = std::shared_ptr<void>;
  void change(std::function<void(Fate)> start);
  // Keeps the place until it is answered. Before any other thread knows of the request.
  void keep(Places::Place place) { place_ = std::move(place); }

  // The caller, with supplementary groups if the operation depends on them.
  enum class Groups { kNo, kYes };
  Identity identity(Groups groups = Groups::kNo) const;

  void error(int code);  // 0: done
  bool succeed();        // false: the caller is gone
  void none();
  // A name and the inode behind it; the kernel counts a lookup. `current`: may be cached.
  void entry(const InodePtr& inode, const Inodes::Taken& taken);
  void noEntry();  // the name does not exist, and the kernel may remember that
  // False: the caller is gone, and the file is not open.
  bool created(const InodePtr& inode, const Inodes::Taken& taken, const fuse_file_info& file,
               const Coherence::Answering& answering);
  bool opened(const fuse_file_info& file);
  void attributes(const Inodes::Taken& taken);
  void link(const std::string& target);
  bool bytes(std::span<const std::byte> data);  // false: the caller is gone
  void written(size_t bytes);
  void statfs(const FsStats& stats);
  void lock(const std::optional<FileLock>& found);
  // size 0: only how long it is.
  void xattr(const std::string& value, size_t size);

  // Runs a change of names for this request. If the caller is gone when the answer comes, so is the
  // kernel's lock on the name: it may have looked meanwhile and remember what is true no more, so
  // it is made to forget.
  void execute(Identity identity, Operation op, Answer<Outcome> answer);
  // The same for what makes an inode: with the caller's umask, and groups if they count.
  void create(CreateOp op, Answer<Outcome> answer);

  fuse_req_t raw() { return request_; }

 private:
  bool claim(int error = 0);  // true once: the caller of claim() answers
  fuse_entry_param entryOf(Inode& inode, const Inodes::Taken& taken, bool mayCache) const;

  fuse_req_t request_;
  Client& client_;
  int caller_ = 0;
  bool interruptible_ = false;
  RequestKind kind_ = RequestKind::kOther;
  std::function<void()> end_;
  Seen seen_;  // the watch's thread
  std::chrono::steady_clock::time_point begunAt_ = std::chrono::steady_clock::now();
  std::atomic<bool> answered_{false};
  Places::Place place_;
  std::mutex giveUpMutex_;
  bool givenUp_ = false;
  std::function<void()> giveUpHook_;
};
using RequestPtr = std::shared_ptr<Request>;

struct stat toStat(const Attributes& attributes);

// The kernel's number of an inode is the inode's own, but for the root of the mount.
InodeId inodeOf(fuse_req_t request, fuse_ino_t node);

}  // namespace trainfs::client
