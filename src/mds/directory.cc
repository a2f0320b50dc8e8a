#include "mds/directory.h"

namespace trainfs::mds {

Status checkName(std::string_view name) {
  if (name.size() > kNameBytesMax) return Errno(ENAMETOOLONG);
  if (name.empty() || name == "." || name == "..") return Errno(EINVAL);
  if (name.find('/') != name.npos || name.find('\0') != name.npos) return Errno(EINVAL);
  return Done{};
}

std::optional<Entry> findEntry(const View& view, const InodeRecord& directory,
                               std::string_view name) {
  auto prefix = entryHashPrefix(directory.attributes.inode, nameHash(directory.hashSeed, name));
  std::optional<Entry> found;
  view.scan(prefix, prefix, [&](std::string_view key, std::string_view value) {
    if (parseEntryKey(key).name == name) found = {std::string(key), decodeEntry(value)};
    return !found;
  });
  return found;
}

bool isEmpty(const View& view, InodeId directory) {
  auto prefix = directoryPrefix(directory);
  bool empty = true;
  view.scan(prefix, prefix, [&](std::string_view, std::string_view) { return empty = false; });
  return empty;
}

Result<std::string> freeEntryKey(const View& view, const InodeRecord& directory,
                                 std::string_view name) {
  InodeId inode = directory.attributes.inode;
  uint64_t hash = nameHash(directory.hashSeed, name);
  auto prefix = entryHashPrefix(inode, hash);
  uint32_t ordinal = 0;
  view.scan(prefix, prefix, [&](std::string_view key, std::string_view) {
    if (parseEntryKey(key).place.ordinal != ordinal) return false;
    ordinal++;
    return true;
  });
  if (ordinal >= kOrdinalsMax) return Errno(ENOSPC);
  return entryKey(inode, {hash, static_cast<uint16_t>(ordinal)}, name);
}

EntryRecord entryFor(const InodeRecord& inode) {
  // DT_* are the type bits of st_mode, shifted (IFTODT in <dirent.h>).
  return {.inode = inode.attributes.inode,
          .mdt = inode.attributes.inode.birthMdt(),
          .type = static_cast<uint8_t>((inode.attributes.mode & 0170000) >> 12)};
}

}  // namespace trainfs::mds
