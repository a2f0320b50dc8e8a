// The layout of a path, as the file system shows and takes it: the xattr trainfs.layout in text
// form.
#pragma once

#include <string>

#include "trainfs/result.h"
#include "trainfs/types.h"

namespace trainfs::tfs {

// With chains and existence. ENODATA: the path has none of its own. ENOTTY: not on a trainfs file
// system. EPROTO: what came is not a layout.
Result<Layout> readLayout(const std::string& path, bool followSymlinks = true);

// EEXIST: a file that has data. ENOTTY: not on a trainfs file system.
Status writeLayout(const std::string& path, const Layout& layout);

// Of a directory, its default. Done also if there was none.
Status removeLayout(const std::string& path);

// strerror, but in trainfs's words where an errno has a meaning of its own here.
std::string layoutError(int code);

}  // namespace trainfs::tfs
