// What must hold in every MDT store, checked record by record: an fsck for tests.
#pragma once

#include <string>
#include <vector>

#include "mds/store.h"

namespace trainfs::mds {

// One line per thing that is wrong; empty: nothing is.
std::vector<std::string> problemsOf(const View& view);

}  // namespace trainfs::mds
