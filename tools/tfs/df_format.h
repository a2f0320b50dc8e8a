// What `tfs df` prints, in the columns of `lfs df`. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster.h"

namespace trainfs::tfs {

enum class DfField {
  kSource,
  kTotal,
  kUsed,
  kFree,
  kAvailable,
  kPercent,
  kInodes,
  kInodesUsed,
  kInodesFree,
  kInodesPercent,
  kTarget,
  kState,
};

struct DfOptions {
  bool inodes = false;
  bool human = false;  // -h, or with si: -H
  bool si = false;
  bool header = true;
  bool onlySummary = false;
  bool mdts = true, osts = true;
  std::optional<uint32_t> mdt, ost;  // only that one
  std::vector<DfField> fields;       // empty: the usual ones
};

// Names of --output; several for most fields. False: there is none of that name.
bool parseDfField(const std::string& name, DfField& field);
std::string dfFieldNames();

std::string formatDf(const ClusterStatus& status, const std::string& mountPoint,
                     const DfOptions& options);

// The last line of df: space of all OSTs; inodes of all MDTs, or fewer if the OSTs have fewer
// objects left.
TargetStatus summarise(const ClusterStatus& status);

}  // namespace trainfs::tfs
