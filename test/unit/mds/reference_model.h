// A file system as POSIX describes it, in maps: what the random test compares the state machine
// with. Shares no code with it. Knows names, links, sizes, permissions, holders and xattrs; not
// times.
#pragma once

#include <map>
#include <set>
#include <string>

#include "mds/command.h"

namespace trainfs::mds {

class ReferenceModel {
 public:
  struct ModelNode {
    uint32_t mode = 0;
    uint64_t sizeBytes = 0, settings = 0;
    std::string target;
    std::map<std::string, InodeId> entries;  // directories
    std::map<std::string, std::string> xattrs;
    std::set<SessionId> holders, writers;
    bool removed = false;  // directories
    bool linkable = false;
  };

  ReferenceModel();

  // The errno that the operation must give, 0 if it succeeds; then the model has changed likewise.
  int apply(const Operation& op, SessionId session);

  const std::map<InodeId, ModelNode>& nodes() const { return nodes_; }
  const std::set<SessionId>& sessions() const { return sessions_; }
  uint32_t linksOf(InodeId inode) const;

 private:
  int create(const CreateOp& op, SessionId session);
  int createUnnamed(const CreateOp& op, SessionId session);
  int link(const LinkOp& op, SessionId session);
  int remove(InodeId parent, const std::string& name, bool directory, const Operation& op);
  int rename(const RenameOp& op);
  int setAttr(const SetAttrOp& op);
  int report(const ReportOp& op, SessionId session);
  int openSession();
  int endSession(SessionId session);

  ModelNode* find(InodeId inode);
  int requireDirectory(InodeId inode, bool linked);
  bool isBelow(InodeId inode, InodeId ancestor);
  void hold(InodeId inode, const std::vector<std::pair<InodeId, SessionId>>& holders);
  void collect();  // what has neither names nor holders goes

  std::map<InodeId, ModelNode> nodes_;
  std::set<SessionId> sessions_;
  uint64_t nextSession_ = 1;
};

}  // namespace trainfs::mds
