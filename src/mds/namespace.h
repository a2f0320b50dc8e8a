// Reading the name space: what the RPC threads ask of a snapshot. Writing it is apply()'s alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mds/command.h"
#include "mds/store.h"
#include "striping/layout_text.h"
#include "trainfs/result.h"
#include "trainfs/types.h"

namespace trainfs::mds {

struct Node {
  Attributes attributes;
  Layout layout;  // regular files; for directories their own default layout, if they have one
};

struct DirEntry {
  std::string name;
  uint64_t cookie = 0;  // 63 bits, > 2; keys.h says how it is made
  InodeId inode;
  Node node;
};

struct DirPage {
  std::vector<DirEntry> entries;
  bool end = false;
};

// ESTALE: no such inode; so for all below.
Result<Node> loadNode(const View& view, InodeId inode);
// ENOENT, ENOTDIR, ENAMETOOLONG.
Result<Node> lookup(const View& view, InodeId parent, std::string_view name);
// Entries strictly after `cookie` (0: from the start), at most min(entriesMax, kReaddirEntriesMax),
// and fewer when those have wide layouts.
inline constexpr uint32_t kReaddirEntriesMax = 4096;
inline constexpr size_t kReaddirBytesMax = 4 * kMiB;
Result<DirPage> readdir(const View& view, InodeId dir, uint64_t cookie, uint32_t entriesMax);
Result<std::string> readlink(const View& view, InodeId inode);  // EINVAL: not a symlink
// The layout in text form (striping/layout_text.h) is read and set as this attribute; listxattr
// does not show it. No other name may begin with "trainfs.". ENODATA: no such attribute.
using striping::kLayoutXattr;
inline constexpr std::string_view kOwnXattrPrefix = "trainfs.";
Result<std::string> getxattr(const View& view, InodeId inode, std::string_view name);
Result<std::vector<std::string>> listxattr(const View& view, InodeId inode);

// The layout that a new file in `dir` gets: the directory's own, else root's, else the built-in
// default (one stripe, 4 MiB). Not yet placed. As in Lustre a new directory takes its parent's own
// default with it; only root's reaches directories that have none.
Layout inheritedLayout(const View& view, InodeId dir);

// ---- for the server and the reaper ----

struct SessionRecord {
  SessionId id;
  uint32_t epoch = 0;
  std::string clientName;
};
std::vector<SessionRecord> sessions(const View& view);

// One that has ended and of which there are still marks or holds. Looks at each session, not at all
// that they have.
std::optional<SessionId> endedWithHolds(const View& view);

// Files that the session has marked as being written.
std::vector<InodeId> writtenBy(const View& view, SessionId session);
// Sessions that have the file marked as being written.
std::vector<SessionId> writersOf(const View& view, InodeId inode);
// Orphans that the session holds.
std::vector<InodeId> orphansOf(const View& view, SessionId session);
// Inodes without a name that the session made with the last request of a slot: the answer may not
// have come to the client yet.
std::vector<InodeId> madeUnnamed(const View& view, SessionId session);

// Objects to be destroyed: (inode, layout it had). At most `most`, in key order, those after
// `after`.
struct Garbage {
  InodeId inode;
  Layout layout;
};
std::vector<Garbage> garbage(const View& view, size_t most, const Garbage* after = nullptr);

// Truncations that were begun: the commands to be given when the objects are cut.
std::vector<Command> truncations(const View& view);
bool truncating(const View& view, InodeId inode);

struct OstRecord {
  uint32_t index = 0;
  std::string uuid, host;
  std::vector<uint16_t> ports;
  uint32_t chainVersion = 0;
  uint64_t start = 0;  // of the OST, the last that was accepted
};
std::vector<OstRecord> osts(const View& view);

// Where leader-chosen inode numbers go on: greater than every number used so far.
InodeId nextInode(const View& view);
// The log index that the store is up to; see setApplied in state_machine.h.
uint64_t appliedIndex(const View& view);
Time lastCommandTime(const View& view);  // no inode has a later ctime
std::string fsname(const View& view);
uint16_t mdtIndex(const View& view);

}  // namespace trainfs::mds
