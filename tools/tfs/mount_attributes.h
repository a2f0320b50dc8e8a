// What a mount tells of itself: the attributes system.trainfs.* of its root
// (docs/format-mount.md). Answered by the client even while no server is, but for names.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trainfs/result.h"
#include "trainfs/types.h"

namespace trainfs::tfs {

// ENOTTY: no trainfs mount, or an older client.
Result<std::string> readMountAttribute(const std::string& point, const std::string& name);

struct NameOf {
  InodeId parent;    // none: the mount's root itself
  std::string name;  // empty then
  std::string path;  // below the mount, from '/' on; empty: too long
};
// All names of an inode below the mount's root. EPERM: not the superuser. ESTALE: no such inode.
Result<std::vector<NameOf>> readNames(const std::string& point, InodeId inode);

// ---- the texts, parsed; what does not belong is left out. Pure ----

struct FeatureLine {
  std::string name, state, detail;  // state: yes, no, or - for a figure
};
std::vector<FeatureLine> parseFeatures(const std::string& text);

struct TimerFigures {
  uint64_t count = 0, errors = 0, nanoseconds = 0, longest = 0;
  std::map<unsigned, uint64_t> buckets;  // bucket n: below 2^n microseconds
  TimerFigures since(const TimerFigures& before) const;
  // An upper bound of what `share` of all took, in microseconds; at most the longest.
  uint64_t quantileMicroseconds(double share) const;
};
struct MountStats {
  std::map<std::string, uint64_t> counters;
  std::map<std::string, TimerFigures> timers;
  MountStats since(const MountStats& before) const;
};
MountStats parseStats(const std::string& text);

}  // namespace trainfs::tfs
