// What this client knows of inodes: attributes and layout, how often the kernel looked them up,
// open handles, and what was written here and is not yet reported to the MDS. Any thread; an
// inode's state is under its mutex, which is held for moments only.
//
// Which of two answers about an inode is the newer one? Every change that this client makes, or
// learns of in the answer to a change, is stamped from one clock; a question notes the clock when
// it is asked, and an answer that a change has overtaken is not taken over.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fuse_client/data_client.h"
#include "fuse_client/forgotten.h"
#include "fuse_client/losses.h"
#include "fuse_client/mds_client.h"
#include "fuse_client/ordered_access.h"
#include "trainfs/types.h"

namespace trainfs::client {

using Instant = uint64_t;  // of the clock of changes

// Extended attributes that the kernel asks for again and again, and that are rarely there.
enum AbsentXattr : uint8_t { kNoCapability = 1, kNoSelinux = 2 };

// Written here and not yet known to the MDS.
struct Unreported {
  uint64_t endBytes = 0;  // highest end of a write
  Time mtime;             // {0,0}: the MDS has the right one
  std::vector<std::pair<uint8_t, uint32_t>> exists;
  bool killPrivileges = false;
  uint64_t changes =
      0;  // grows with every change; a report covers those up to the number it was made at
  uint64_t reported = 0;
  // Attributes::settings as it was known here when what made endBytes and mtime was sent: the
  // newest. A change that was sent under an older count says nothing any more of how long the file
  // is, and makes the MDS ask the objects.
  uint64_t settings = 0;
  uint64_t overtakenUpTo = 0;  // the last such change

  bool any() const { return changes != reported; }
  bool overtaken() const { return overtakenUpTo > reported; }
  void add(uint64_t sentUnder, uint64_t end, Time now);  // end 0: no data was written
  void noteReported(uint64_t upTo);
  // This client has set the size, or the mtime only; that made the count `now`.
  void noteSet(bool size, uint64_t now);
};

// What OSTs' file systems allocate in.
inline constexpr uint64_t kAllocationBytes = 4096;

struct Inode {
  explicit Inode(InodeId inode) : id(inode) {}
  const InodeId id;
  // Reads, writes, reports: shared. Appends, truncation, opening for writing and the last report:
  // exclusive.
  const std::shared_ptr<OrderedAccess> access = OrderedAccess::create();
  const std::shared_ptr<OrderedAccess> syncs = OrderedAccess::create();  // one fsync after another

  std::mutex mutex;
  bool known =
      false;  // attributes and layout are what the MDS has, as far as this client may rely on it
  Attributes attributes;
  std::shared_ptr<const Layout> layout;
  Instant changedAt = 0;  // when the MDS last answered a change of it, or it was forgotten
  InodeId parent;         // where it was seen last; for ".." of directories
  uint8_t absentXattrs = 0;
  Instant xattrsChangedAt = 0;

  uint64_t lookups = 0;  // of the kernel
  uint32_t handles = 0, writers = 0;
  bool toldOpen = false, toldWriting = false;  // the MDS was told
  bool orphan = false;  // unlinked, maybe, and kept for this client until its last handle goes

  Unreported unreported;
  bool reporting = false;    // the reporter's last report is in line or under way
  UnsyncedObjects unsynced;  // changed since the last fsync
  bool pastUnknown = true;   // there may be more: a write failed, or the inode was met only now
  bool grownInOrder = true;  // every byte was appended: allocated bytes follow from the size
  bool strayBytes = false;   // a write failed that may have left bytes beyond the size
  bool cutUnknown = false;   // a truncation failed that may still be done
  Losses losses;             // EIO at the next fsync or close

  // Is to be remembered when the inode is forgotten. mutex held.
  Forgotten::Past takePast();
  // Attributes with what was written here on top. mutex held.
  Attributes present() const { return withUnreported(attributes); }
  Attributes withUnreported(Attributes attributes) const;
  // Others have set the size since some of what was written here was sent: until that is reported,
  // nobody but the objects knows the size. mutex held.
  bool overtaken() const;
};
using InodePtr = std::shared_ptr<Inode>;

// An open file or directory: fuse_file_info::fh.
struct OpenHandle {
  InodePtr inode;
  bool writing = false;
  Losses::Mark losses;  // of files
  bool cached =
      false;  // the kernel keeps what it reads, also when this client may not cache any more
};

class Inodes {
 public:
  // The directory that is mounted; before the kernel asks for anything. The kernel calls it 1.
  void setRoot(InodeId root) { root_ = root; }
  InodeId root() const { return root_; }
  InodeId ofNode(uint64_t node) const { return node == kRootNode ? root_ : InodeId{node}; }
  uint64_t nodeOf(InodeId inode) const { return inode == root_ ? kRootNode : inode.value; }

  Instant now() const { return clock_.load(std::memory_order_acquire); }
  Instant tick() { return clock_.fetch_add(1, std::memory_order_acq_rel) + 1; }

  InodePtr find(InodeId id);    // null: not known
  InodePtr obtain(InodeId id);  // makes it if need be; the same one as long as anybody holds it
  // Lets go of inodes that only an operation under way had kept. Now and then.
  void dropIdle();
  const Forgotten& forgotten() const { return forgotten_; }

  // Takes an answer over; `askedAt`: the clock when the question was asked. Returns what to tell
  // the kernel, and whether that may be cached (it is the newest there is, and no write of this
  // client waits to be told under an older count of settings).
  struct Taken {
    Attributes attributes;
    bool current = false;
  };
  Taken take(Inode& inode, const Node& node, Instant askedAt);
  // The answer to a change that this client made.
  Taken takeChange(Inode& inode, const Node& node);
  // Chains of another component: taken over whatever else has changed, since chains are only ever
  // added.
  void takeLayout(Inode& inode, const Node& node);
  // Something in it changed that no answer described: ask before relying on it.
  void forgetState(InodeId id);
  void forgetAll();
  // A name was replaced; if it belonged to one of several of an inode, that one's count of links is
  // not known any more.
  void forgetHardLinked();
  void setParent(Inode& inode, InodeId parent);
  bool isOpen(InodeId id);

  void addLookup(const InodePtr& inode);
  void forget(InodeId id, uint64_t lookups);

  void addHandle(const InodePtr& inode, bool writing);
  // True: that was the last writing handle, or the last handle.
  struct Left {
    bool lastWriter = false, last = false;
  };
  Left dropHandle(const InodePtr& inode, bool writing);

  // What is open, or closed with the last report still on its way, to be told to the MDS: marked as
  // told.
  std::vector<OpenFile> openFiles(MdsEvents::Told told);
  // For unlink: everything open here; nullopt when that is more than `most`.
  std::optional<std::vector<InodeId>> openInodes(size_t most);
  std::vector<InodePtr> all();
  struct Figures {
    size_t known = 0, open = 0, unreported = 0;
  };
  Figures figures();

  // ---- inodes with unreported changes ----
  void noteUnreported(const InodePtr& inode);
  std::vector<InodePtr> unreported();

 private:
  static constexpr size_t kShards = 64;
  static constexpr uint64_t kRootNode = 1;  // FUSE_ROOT_ID
  struct Shard {
    std::mutex mutex;
    std::unordered_map<InodeId, InodePtr> inodes;
    Instant droppedAt = 0;  // newest change of an inode that was dropped
  };
  Shard& shardOf(InodeId id) { return shards_[std::hash<InodeId>{}(id) % kShards]; }
  void dropIfUnused(InodeId id);
  void adopt(Inode& inode, const Node& node);  // its mutex held

  InodeId root_ = kRootInode;
  std::atomic<Instant> clock_{1};
  std::array<Shard, kShards> shards_;
  Forgotten forgotten_;
  std::mutex idleSoonMutex_;
  std::unordered_set<InodeId> idleSoon_;
  std::mutex openMutex_;
  std::unordered_map<InodeId, InodePtr> open_;
  std::mutex hardLinkedMutex_;
  std::unordered_set<InodeId> hardLinked_;  // with more than one link, among those known
  std::mutex unreportedMutex_;
  std::unordered_map<InodeId, InodePtr> unreported_;
};

}  // namespace trainfs::client
