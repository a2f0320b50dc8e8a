// File identifiers, as lfs writes them: [0x<high>:0x<low>:0x0], the halves of the inode number.
// Pure.
#pragma once

#include <string>

#include "trainfs/types.h"

namespace trainfs::tfs {

std::string formatFid(InodeId inode);

// With or without brackets, numbers in hexadecimal. False: not a FID, or not one of trainfs.
bool parseFid(const std::string& text, InodeId& inode);

}  // namespace trainfs::tfs
