// `mount -o remount,...`: what the helper does, as a process beside the mount. Changes what can be
// changed of a mount that serves; says which option cannot.
#pragma once

#include <string>

#include "fuse_client/mount_options.h"

namespace trainfs::client {

// `lists`: as after each -o. Returns what is wrong, or an empty string.
std::string remount(const std::string& source, const std::string& mountPoint,
                    const std::vector<std::string>& lists, bool sloppy);

// A line of /proc/self/mountinfo, taken apart. For tests.
struct MountLine {
  std::string mountPoint, options, type, source, superOptions;
};
bool parseMountLine(const std::string& line, MountLine& result);

// The flags of mount(2) that say what the line says.
unsigned long mountFlags(const MountLine& line);
// With the options of one list on top; what is none of the kernel's is passed over.
unsigned long withOptions(unsigned long flags, const MountOptions& options);

}  // namespace trainfs::client
