// What clients ask for, between the RPC edge and the log: choices of the leader, who holds what
// open, and true sizes of files that others are writing. Plain structs in and out. Owned by the MDS
// event loop. A snapshot is opened and dropped within one turn of it.
#pragma once

#include <kj/async.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mds/names.h"
#include "mds/names_in_flight.h"
#include "mds/own_commands.h"
#include "mds/reaper.h"
#include "mds/session_table.h"
#include "mds/size_recovery.h"
#include "mds/truncations.h"
#include "mds/wire.h"

namespace trainfs::mds {

// Files of one directory page that are glimpsed at the same time.
inline constexpr size_t kGlimpsesAtOnce = 64;
// For one question, if truncations come in between.
inline constexpr int kGlimpsesOfOneFile = 4;

struct ChangeReply {
  int error = 0;
  bool existed = false;
  std::optional<Node> node;  // the inode concerned, where there still is one
  bool sessionOver = false;  // the client broke the rules of its slots
};

class Operations {
 public:
  struct Parts {
    Store& store;
    Log& log;
    Choices& choices;
    OstTable& osts;
    OwnCommands& commands;
    SessionTable& sessions;
    NamesInFlight& names;
    Glimpse& glimpse;
    Truncations& truncations;
    SizeRecovery& recovery;
    Reaper& reaper;
  };
  explicit Operations(const Parts& parts) : parts_(parts) {}

  kj::Promise<ChangeReply> execute(std::shared_ptr<Session> session, ChangeRequest request);

  kj::Promise<Result<Node>> lookup(std::shared_ptr<Session> session, InodeId parent,
                                   std::string_view name);
  kj::Promise<Result<Node>> getattr(std::shared_ptr<Session> session, InodeId inode);
  kj::Promise<Result<DirPage>> readdir(std::shared_ptr<Session> session, InodeId inode,
                                       uint64_t cookie, uint32_t entriesMax);
  kj::Promise<Result<Node>> open(std::shared_ptr<Session> session, OpenedFile file);
  kj::Promise<Status> release(std::shared_ptr<Session> session, InodeId inode);
  kj::Promise<Result<Node>> instantiate(std::shared_ptr<Session> session, InodeId inode,
                                        uint8_t component);

  Result<std::string> readlink(InodeId inode);
  Result<std::string> getxattr(InodeId inode, std::string_view name);
  Result<std::vector<std::string>> listxattr(InodeId inode);
  Result<NamesPage> names(InodeId inode, InodeId root, NameCursor after);

 private:
  // Fills in what the leader chooses, and enters the names it will change in `hold`.
  Status prepare(ChangeRequest& request, const Session& session, NamesInFlight::Hold& hold);
  bool isRepeated(const ChangeRequest& request, const Session& session);
  Status prepareCreate(CreateOp& op, const std::string& layoutText);
  Status prepareLayout(ChangeRequest& request);
  Result<Layout> newLayout(const Node& node, std::string_view text);
  bool namesKnownOsts(const Layout& layout) const;
  void prepareRemoval(InodeId parent, const std::string& name, const ChangeRequest& request,
                      const Session& session, NamesInFlight::Hold& hold,
                      std::vector<std::pair<InodeId, SessionId>>& holders);
  bool mustWaitForNames(const Operation& op) const;
  kj::Promise<Status> created(std::shared_ptr<Session> session, InodeId inode, bool writing);

  // Whether the record may lag behind what somebody else has written.
  bool writtenByOthers(const View& view, const Session& session, const Node& node);
  // EIO if part of the file cannot be looked at; then the node says what the rest does.
  kj::Promise<Status> settle(Session& asker, Node& node);

  Parts parts_;
};

}  // namespace trainfs::mds
