// The client's side of the MDS protocol (include/trainfs/mds.capnp): one session, on a thread of
// its own that runs the kj event loop. Calls may come from any thread; each is handed over and
// returns at once, and its answer runs exactly once, on the MDS thread. Answers must not block.
//
// Failure rules: a lost connection is looked for again at every listed MDS for ever; the session is
// resumed and every unanswered mutation resent in its slot with its sequence, every unanswered read
// asked again. Nothing fails because a server is away, unless the mount is `soft`. If the session
// was evicted meanwhile, what had been sent in it and was not answered fails with EIO (nobody knows
// whether it happened), and a new session takes over.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fuse_client/boot_clock.h"
#include "fuse_client/statistics.h"
#include "trainfs/changes.h"
#include "trainfs/cluster_map.h"
#include "trainfs/config.h"
#include "trainfs/file_lock.h"
#include "trainfs/inode_names.h"
#include "trainfs/result.h"
#include "trainfs/types.h"

namespace trainfs::client {

struct Identity {
  uint32_t uid = 0, gid = 0;
  std::vector<uint32_t> groups;
};

struct Node {
  Attributes attributes;
  std::shared_ptr<const Layout> layout;  // null unless a regular file
};

struct DirEntry {
  std::string name;
  uint64_t cookie = 0;
  Node node;
};
struct DirPage {
  std::vector<DirEntry> entries;
  bool end = false;
};

struct FsStats {
  uint64_t totalBytes = 0, freeBytes = 0, availableBytes = 0;
  uint64_t files = 0, freeFiles = 0;
};

struct OpenFile {
  InodeId inode;
  bool writing = false;
};

// ---- mutations: what Session.execute carries (the others: trainfs/changes.h) ----

enum class Opening : uint8_t { kNot, kReading, kWriting };

struct CreateOp {
  InodeId parent;
  std::string name;
  uint32_t mode = 0, umask = 0;  // as asked for; whether the umask counts is the MDS's to say
  uint64_t device = 0;
  std::string target;  // symlink
  Opening opening = Opening::kNot;
  bool unnamed = false, linkable = false;  // O_TMPFILE; without O_EXCL
};
struct UnlinkOp {
  InodeId parent;
  std::string name;
  std::vector<InodeId> keepOpen;
};
struct RmdirOp {
  InodeId parent;
  std::string name;
  std::vector<InodeId> keepOpen;
};
struct RenameOp {
  InodeId parent;
  std::string name;
  InodeId newParent;
  std::string newName;
  bool noReplace = false, exchange = false;
  std::vector<InodeId> keepOpen;
};
using Operation = std::variant<CreateOp, LinkOp, UnlinkOp, RmdirOp, RenameOp, SetAttrOp, SetXattrOp,
                               RemoveXattrOp, ReportOp>;

struct Outcome {
  std::optional<Node> node;  // the inode concerned, where there still is one
};

// A lock that is asked for, to give up by.
struct LockWait;

template <typename T>
using Answer = std::function<void(Result<T>)>;

// What the session tells the rest of the client. Called on the MDS thread; must not block.
class MdsEvents {
 public:
  virtual ~MdsEvents() = default;
  // A new session, or (fresh = false) the old one resumed at a server that may have restarted.
  // `removed`: open inodes that a new session does not have, for others have removed them.
  virtual void sessionOpened(SessionId session, uint32_t epoch, bool fresh, bool mayCache,
                             std::vector<InodeId> removed) = 0;
  virtual void mapChanged(ClusterMap map) = 0;
  // Another client has come, or is at work again. `done` may be called from any thread, once: when
  // nothing is cached any more.
  virtual void recalled(std::function<void()> done) = 0;
  virtual void mayCache() = 0;
  // The MDS has answered: until then it gives to nobody else what this client may cache. After each
  // sessionOpened, and whenever the session was renewed.
  virtual void trusted(BootClock::time_point until) = 0;
  // That time has come without another answer.
  virtual void lapsed() = 0;
  // Every file that is open here. kMore: what the MDS knows besides stays; kAll: the list replaces
  // what it knows.
  enum class Told { kMore, kAll };
  virtual std::vector<OpenFile> openFiles(Told told) = 0;
  // Every lock that was granted in this session, for a server that has lost them.
  virtual std::vector<FileLock> heldLocks() = 0;
  // It was told that it may, or has not forgotten everything yet.
  virtual bool mayBeCaching() = 0;
};

struct MdsClientOptions {
  std::vector<HostPort> servers;
  std::string fsname;
  std::string clientName;
  bool readOnly = false;
  bool soft = false;
  std::chrono::milliseconds softTimeout{60'000};
  Statistics* statistics = nullptr;  // outlives the client; null: nobody counts
};

class MdsClient {
 public:
  // Starts the thread; it looks for the servers at once.
  static std::unique_ptr<MdsClient> create(MdsClientOptions options, MdsEvents& events);
  virtual ~MdsClient() = default;
  // Ends the thread. What is unanswered is dropped, what is handed over from then on fails with
  // ESHUTDOWN.
  virtual void stop() = 0;

  // Waits until the first session is open. Otherwise the reason, in words.
  virtual std::optional<std::string> waitForSession(std::chrono::milliseconds patience) = 0;
  // Waits until every mutation handed over before has been answered, then ends the session: the MDS
  // need not wait for its lease to run out. False: not within `patience`.
  virtual bool end(std::chrono::milliseconds patience) = 0;
  // The session may be over: an OSS says so. Asks the MDS now instead of at the next renewal.
  virtual void checkSession() = 0;

  // kUrgent: for what a recall waits on; has slots that ordinary mutations cannot use up.
  enum class Urgency { kOrdinary, kUrgent };
  virtual void execute(Identity identity, Operation op, Answer<Outcome> answer,
                       Urgency urgency = Urgency::kOrdinary) = 0;

  // Answers when it is known of every change of the inode that has failed whether it happened; EIO:
  // not within softTimeout. Asks nobody.
  virtual void settled(InodeId inode, Answer<Done> answer) = 0;

  virtual void lookup(InodeId parent, std::string name, Answer<Node> answer) = 0;
  virtual void getattr(InodeId inode, Answer<Node> answer) = 0;
  virtual void readdir(InodeId inode, uint64_t cookie, uint32_t entriesMax,
                       Answer<DirPage> answer) = 0;
  virtual void readlink(InodeId inode, Answer<std::string> answer) = 0;
  virtual void getxattr(InodeId inode, std::string name, Answer<std::string> answer) = 0;
  virtual void listxattr(InodeId inode, Answer<std::vector<std::string>> answer) = 0;
  // A page of the inode's names below `root`, after `after`.
  virtual void names(InodeId inode, InodeId root, NameCursor after, Answer<NamesPage> answer) = 0;
  virtual void statfs(Answer<FsStats> answer) = 0;
  virtual void open(InodeId inode, bool writing, Answer<Node> answer) = 0;
  virtual void release(InodeId inode, Answer<Done> answer) = 0;
  virtual void instantiate(InodeId inode, uint8_t component, Answer<Node> answer) = 0;

  // `waits`: until it is granted, or given up; otherwise EAGAIN when it cannot be had now.
  virtual std::shared_ptr<LockWait> lock(const FileLock& lock, bool waits, Answer<Done> answer) = 0;
  // Of a lock that waits. Its answer comes soon: EINTR, or that it had been granted before.
  virtual void giveUp(std::shared_ptr<LockWait> wait) = 0;
  virtual void unlock(const FileLock& lock, Answer<Done> answer) = 0;
  // The lock of another owner that this one would have to wait for, if there is one.
  virtual void testLock(const FileLock& lock, Answer<std::optional<FileLock>> answer) = 0;
};

}  // namespace trainfs::client
