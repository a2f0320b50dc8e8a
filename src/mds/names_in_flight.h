// Names and inodes that commands in the log are about to change: what the store says about them is
// not the last word. Unlink and rename look there for the inode that they remove; open looks for a
// removal. No I/O. Owned by the MDS event loop.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mds/condition.h"
#include "trainfs/types.h"

namespace trainfs::mds {

class NamesInFlight {
 public:
  // Holds the names and inodes of one command until it is applied and its effects are in the open
  // table.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&&) = default;
    Hold& operator=(Hold&&) = delete;
    ~Hold();
    void name(InodeId parent, std::string_view name);
    void doom(InodeId inode);  // may be gone afterwards

   private:
    friend class NamesInFlight;
    struct Counts {
      std::unordered_map<std::string, uint32_t> names;
      std::unordered_map<InodeId, uint32_t> doomed;
      Condition changed;
    };
    explicit Hold(std::shared_ptr<Counts> counts) : counts_(std::move(counts)) {}

    std::shared_ptr<Counts> counts_;
    std::vector<std::string> names_;
    std::vector<InodeId> doomed_;
  };

  Hold hold() { return Hold(counts_); }
  bool has(InodeId parent, std::string_view name) const;
  bool doomed(InodeId inode) const { return counts_->doomed.contains(inode); }
  kj::Promise<void> changed() { return counts_->changed.wait(); }

 private:
  // Shared: a request that outlives the server lets go of its names later.
  std::shared_ptr<Hold::Counts> counts_ = std::make_shared<Hold::Counts>();
};

}  // namespace trainfs::mds
