// Commands: every change of an MDT, as plain values. What apply() may depend on is all in here:
// time, new inode numbers, placement and who asks are chosen once, before the command is logged.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "trainfs/changes.h"
#include "trainfs/types.h"

namespace trainfs::mds {

struct Identity {
  uint32_t uid = 0, gid = 0;
  std::vector<uint32_t> groups;
};

// ---- operations of clients (wire: mds.capnp Operation; the others: trainfs/changes.h) ----

struct CreateOp {  // regular file, directory, symlink, FIFO, socket, device: by the type in `mode`
  InodeId parent;
  std::string name;
  uint32_t mode = 0;   // as asked for
  uint32_t umask = 0;  // takes from `mode`, unless the parent has a default ACL, which does instead
  uint64_t device = 0;
  std::string target;     // symlink
  bool exclusive = true;  // EEXIST if there; else a regular file there is answered with existed
  bool writing = false;   // regular file: also mark it as being written by the session
  bool unnamed = false;   // regular file without a name, held by the session (O_TMPFILE)
  bool linkable = false;  // unnamed: it may be given a name (no O_EXCL)
  InodeId newInode;       // chosen by the leader, above every number used before
  Layout layout;  // regular file: chosen by the leader, first component instantiated if there are
                  // OSTs; directory: its own default layout, empty for what it inherits
};
struct UnlinkOp {
  InodeId parent;
  std::string name;
  // Sessions that have an inode open (leader's table and the caller's own word): should the last
  // link of one go, it stays as their orphan instead of being destroyed.
  std::vector<std::pair<InodeId, SessionId>> holders;
};
struct RmdirOp {
  InodeId parent;
  std::string name;
  // As UnlinkOp's: an open directory stays for getattr.
  std::vector<std::pair<InodeId, SessionId>> holders;
};
struct RenameOp {
  InodeId parent;
  std::string name;
  InodeId newParent;
  std::string newName;
  bool noReplace = false, exchange = false;
  std::vector<std::pair<InodeId, SessionId>> holders;
};

// From setxattr/removexattr of trainfs.layout, which is not stored as an xattr; `layout` is parsed
// and, for a file, placed by the leader.
struct SetLayoutOp {
  InodeId inode;
  Layout layout;                         // no components: remove a directory's default layout
  bool create = false, replace = false;  // XATTR_CREATE, XATTR_REPLACE
};

// ---- operations of the MDS itself or of session management ----

// Mark: this session writes this file. Of session 0: a writer died and the size is to be asked of
// the OSTs; the MDS's own ReportOp or ReleaseOp takes the mark away.
struct OpenWriteOp {
  InodeId inode;
};
struct InstantiateOp {  // give a component its chains; keeps what is there if it has some already
  InodeId inode;
  uint8_t component = 0;
  std::vector<ChainId> chains;
};
// A truncation, from the log to the OSTs and back. First it is written down what is to be done: the
// session's command, in that slot. Then the objects are cut, and it is the command's turn, which
// erases that; if one cannot be cut, the end takes its place: `error` is what is answered, and the
// size is to be asked of the OSTs (truncations.h).
struct BeginTruncationOp {
  SetAttrOp set;  // with kCutObjects
  uint16_t slot = 0;
  uint64_t sequence = 0;
};
struct EndTruncationOp {
  InodeId inode;
  uint16_t error = 0;  // errno
};
// The session has closed its last handle: drop its hold on an orphan and its write mark.
struct ReleaseOp {
  InodeId inode;
};
struct OpenSessionOp {
  std::string clientName;
};
// Ends a session (by its own will, or evicted: the caller has fenced it, and has marked the files
// that it was writing first): it and its slots go, its marks and orphan holds as far as
// kHoldsEndedAtOnce. If there are more, the same command once more takes the next.
inline constexpr size_t kHoldsEndedAtOnce = 256;
struct EndSessionOp {
  SessionId session;
};
struct ReapedOp {  // the objects of a garbage record are destroyed: forget it
  InodeId inode;
  uint32_t generation = 0;
};
struct RegisterOstOp {
  uint32_t index = 0;
  std::string uuid, host;
  std::vector<uint16_t> ports;
  uint64_t start = 0, acceptedStart = 0;  // see OstRegistration in oss.capnp
  bool olderCopy = false;
};

// ---- the changelog (changelog.h) ----

struct RegisterChangelogOp {
  std::string name;  // of the program, to be told apart by; may be empty
};
struct DeregisterChangelogOp {
  uint32_t user = 0;
};
struct ClearChangelogOp {
  uint32_t user = 0;
  uint64_t upTo = 0;  // this one, too; 0: all that there are
};
// Erases what every user has cleared, kTrimmedAtOnce records.
struct TrimChangelogOp {};

// In the log an operation is known by its place in this list, and its fields by their order
// (command_record.cc): new ones go to the end.
using Operation = std::variant<CreateOp, LinkOp, UnlinkOp, RmdirOp, RenameOp, SetAttrOp, SetXattrOp,
                               RemoveXattrOp, SetLayoutOp, ReportOp, OpenWriteOp, InstantiateOp,
                               ReleaseOp, OpenSessionOp, EndSessionOp, ReapedOp, RegisterOstOp,
                               RegisterChangelogOp, DeregisterChangelogOp, ClearChangelogOp,
                               TrimChangelogOp, BeginTruncationOp, EndTruncationOp>;

inline constexpr uint16_t kNoSlot = 0xffff;
inline constexpr SessionId kMdsItself{0};  // as the session of a command

struct Command {
  SessionId session;
  uint16_t slot = kNoSlot;  // kNoSlot: idempotent by nature, no reply is kept
  uint64_t sequence = 0;
  Identity identity;
  Time now;  // the leader's clock, monotonic over commands
  Operation op;
};

// What apply() gives back and a slot keeps: small, and enough to rebuild the reply from the store.
// kMadeUnnamed, the inode has no name, is a value of no other operation on an inode.
inline constexpr uint64_t kMadeUnnamed = 2;
inline constexpr uint64_t kSizeToBeAsked = 1;  // the file has got the mark of kMdsItself
struct Outcome {
  int error = 0;  // errno
  InodeId inode;  // the inode concerned (created, found, changed); kNoInode: none or gone
  bool existed = false;
  // Create: kMadeUnnamed; OpenSession: the new session's id; EndSession: 1, it still holds
  // something; RegisterOst: the chain's version; Report, EndTruncation: kSizeToBeAsked;
  // RegisterChangelog: the user; TrimChangelog: 1, there is more
  uint64_t value = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

}  // namespace trainfs::mds
