// File calls of the store, the log and the checkpoint: whole or an exception that names the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainfs::mds {

// Fewer bytes only where the file ends.
std::string readAt(int fd, uint64_t offsetBytes, size_t bytes, const std::string& path);
void writeAt(int fd, uint64_t offsetBytes, std::string_view bytes, const std::string& path);
// Data, size, and what is needed to find them. After a failure nobody can tell what is on disk, and
// a second attempt would succeed all the same: whoever relied on it has to give up.
void syncData(int fd, const std::string& path);
// The names of files must outlive a power cut like what is in them.
void syncDirectory(const std::string& directory);

}  // namespace trainfs::mds
