// What a mount tells of itself: extended attributes of its root that begin with
// "system.trainfs.". In that name space Linux asks neither for permissions nor for fresh attributes
// first, so they are answered even while no server is. Forms: docs/format-mount.md.
#pragma once

#include <string_view>

#include "fuse_client/fuse_request.h"

namespace trainfs::client {

inline constexpr std::string_view kMountAttributes = "system.trainfs.";

// Answers the request. `name` begins with kMountAttributes.
//   features          what of the kernel and of libraries is in use
//   stats             Statistics::text
//   names.INODE[.PARENT.PLACE]    a page of the inode's names below the mount's root (hexadecimal;
//                                 the cursor as the page before gave it); the superuser's alone
void mountAttribute(const RequestPtr& request, std::string_view name, size_t size);

}  // namespace trainfs::client
