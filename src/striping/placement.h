// Which chains a new component gets. Pure: what is known of the OSTs comes in, a list of chains goes out.
#pragma once

#include <cstdint>
#include <vector>

#include "trainfs/result.h"
#include "trainfs/types.h"

namespace trainfs::striping {

struct OstSpace {
  uint32_t index = 0;
  bool active = false;
  uint64_t totalBytes = 0, availableBytes = 0;
};

// Less than 1 % and less than 1 GiB available: gets no new objects unless asked for by name.
bool isFull(const OstSpace& ost);

// Chains for one component. `turn` makes consecutive files start at different OSTs (round robin, as long as the
// OSTs are about equally full; otherwise weighted by free space, derived from `turn` alone). Full OSTs (less
// than 1 % and less than 1 GiB available, or nothing known) and inactive ones are passed over unless asked for
// by name. stripeCountAll means every usable OST, and a count above the number of usable OSTs means all.
// Errors: ENOSPC (no usable OST), EINVAL (a named OST does not exist, or stripeOffset names none).
Result<std::vector<ChainId>> chooseChains(const Component& component, const std::vector<OstSpace>& osts,
                                          uint64_t turn);

// The layout with its first component instantiated; later ones stay empty. With no active OST at all the layout
// is returned as it is, so that files can be created and get their chains at the first write.
Result<Layout> place(Layout layout, const std::vector<OstSpace>& osts, uint64_t turn);

// Gives the component its chains; no object exists yet.
void setChains(Component& component, std::vector<ChainId> chains);

// Fills in what an inherited or given layout leaves open: generation 1, default component.
Layout defaultLayout();  // one component [0, EOF), 4 MiB, one stripe

}  // namespace trainfs::striping
