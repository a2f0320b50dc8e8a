// The text form of a layout: the value of the xattr trainfs.layout, and what `tfs` passes around.
// One line per component, fields in this order, those without a value left out:
//   start=0 end=eof pattern=raid0 stripe_size=4194304 stripe_count=4 stripe_offset=-1 pool=flash osts=0,1 chains=0,1,2,3 exists=1,1,0,0
// preceded, when read, by a line `generation=N`. Sizes accept K M G T suffixes; stripe_count and stripe_offset
// accept -1; chains and exists are read-only and ignored when set. A directory's default layout has no chains.
#pragma once

#include <string>
#include <string_view>

#include "trainfs/types.h"

namespace trainfs::striping {

std::string formatLayout(const Layout& layout);

struct ParsedLayout {
  Layout layout;
  std::string error;  // empty: fine. Names the field and what is wrong with it
};
ParsedLayout parseLayout(std::string_view text);

// "4M" -> 4194304. Suffixes k K m M g G t T (binary), as lfs. Returns false on garbage or overflow.
bool parseSize(std::string_view text, uint64_t& bytes);

}  // namespace trainfs::striping
