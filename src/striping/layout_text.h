// The text form of a layout: the value of the xattr trainfs.layout, and what `tfs` passes around.
// One line per component:
//   start=0 end=eof pattern=raid0 stripe_size=4194304 stripe_count=4 stripe_offset=-1 pool=flash osts=0,1,2,3 chains=0,1,2,3 exists=1,1,0,0
// preceded, when read, by a line `generation=N`. Written in this order, fields without a value left out;
// read in any order. Sizes accept K M G T P E suffixes; stripe_count and stripe_offset accept -1.
// What is not given: start where the component before ends, end eof, pattern raid0, stripe_size 4 MiB or
// the greatest power of two below that divides the end, stripe_count 1 or the number of osts,
// stripe_offset -1. A directory's default layout has no chains. docs/format-layout.md.
#pragma once

#include <string>
#include <string_view>

#include "trainfs/types.h"

namespace trainfs::striping {

inline constexpr const char* kLayoutXattr = "trainfs.layout";

// The longest line, 2,000 chains, is below 40 KiB; the whole must fit an xattr to be read or set.
inline constexpr size_t kLayoutTextBytesMax = kXattrValueBytesMax;

std::string formatLayout(const Layout& layout);

// generation, chains and exists say what is, not what is wanted: whoever sets a layout ignores them (they
// are checked for form all the same), whoever shows one keeps them.
enum class StateFields { kIgnore, kKeep };

struct ParsedLayout {
  Layout layout;      // passes checkLayout and has a component, if error is empty
  std::string error;  // empty: fine. Names the field and what is wrong with it
};
ParsedLayout parseLayout(std::string_view text, StateFields state = StateFields::kIgnore);

// "4M" -> 4194304. Suffixes k K m M g G t T p P e E (binary), as lfs. Returns false on garbage or overflow.
bool parseSize(std::string_view text, uint64_t& bytes);

}  // namespace trainfs::striping
