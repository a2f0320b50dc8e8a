// Entries of one directory: find, add, replace, remove. Does not touch inodes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "mds/inodes.h"
#include "mds/keys.h"
#include "mds/records.h"
#include "mds/store.h"
#include "trainfs/result.h"

namespace trainfs::mds {

// Names that can be an entry's: EINVAL for "", ".", ".." and those with '/' or NUL, ENAMETOOLONG.
Status checkName(std::string_view name);

struct Entry {
  std::string key;
  EntryRecord record;
};
std::optional<Entry> findEntry(const View& view, const InodeRecord& directory,
                               std::string_view name);

bool isEmpty(const View& view, InodeId directory);

// Where a name that is not there would go: the first free place for its hash. ENOSPC: kOrdinalsMax
// names of the same hash.
Result<std::string> freeEntryKey(const View& view, const InodeRecord& directory,
                                 std::string_view name);

EntryRecord entryFor(const InodeRecord& inode);

}  // namespace trainfs::mds
