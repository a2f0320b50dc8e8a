#include "changelog_format.h"

#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>

#include <array>
#include <nlohmann/json.hpp>

#include "fid.h"
#include "json_text.h"

namespace trainfs::tfs {
namespace {

constexpr std::array<const char*, 18> kNames = {
    "MARK",  "CREAT", "MKDIR", "HLINK", "SLINK", "MKNOD", "UNLNK", "RMDIR", "RENME",
    "RNMTO", "OPEN",  "CLOSE", "LYOUT", "TRUNC", "SATTR", "XATTR", "HSM",   "MTIME"};

// Lustre's CLF_UNLINK_LAST and CLF_RENAME_LAST, CLFE_UIDGID and CLFE_XATTR.
constexpr uint32_t kLastLinkFlag = 0x1;
constexpr uint32_t kOwnerExtra = 0x1, kXattrExtra = 0x8;

std::string day(Time time, const char* format) {
  return fmt::format(fmt::runtime(format), fmt::gmtime(static_cast<std::time_t>(time.seconds)));
}

}  // namespace

std::string changeTypeName(uint8_t type) {
  return type < kNames.size() ? kNames[type] : std::to_string(type);
}

std::string changeLine(const Change& change) {
  auto line = fmt::format("{} {:02}{:<5} {}.{:09} {} {:#x} t={}", change.index, change.type,
                          changeTypeName(change.type), day(change.time, "{:%H:%M:%S}"),
                          change.time.nanoseconds, day(change.time, "{:%Y.%m.%d}"),
                          change.lastLink ? kLastLinkFlag : 0u, formatFid(change.target));
  uint32_t extra = (change.hasOwner ? kOwnerExtra : 0) | (change.xattr.empty() ? 0 : kXattrExtra);
  if (extra != 0) line += fmt::format(" ef={:#x}", extra);
  if (change.hasOwner) line += fmt::format(" u={}:{}", change.uid, change.gid);
  if (!change.xattr.empty()) line += " x=" + change.xattr;
  if (!change.name.empty()) line += " p=" + formatFid(change.parent) + " " + change.name;
  if (!change.sourceName.empty())
    line += " s=" + formatFid(change.source) + " sp=" + formatFid(change.sourceParent) + " " +
            change.sourceName;
  return line;
}

nlohmann::json changeJson(const Change& change) {
  nlohmann::json json = {
      {"index", change.index},
      {"type", changeTypeName(change.type)},
      {"time", jsonTime(change.time)},
      {"last_link", change.lastLink},
      {"target",
       change.target == kNoInode ? nlohmann::json() : nlohmann::json(formatFid(change.target))}};
  if (change.hasOwner) json["uid"] = change.uid, json["gid"] = change.gid;
  if (!change.xattr.empty()) json["xattr"] = change.xattr;
  if (!change.name.empty()) {
    json["parent"] = formatFid(change.parent);
    json["name"] = change.name;
  }
  if (!change.sourceName.empty()) {
    json["source"] = formatFid(change.source);
    json["source_parent"] = formatFid(change.sourceParent);
    json["source_name"] = change.sourceName;
  }
  return json;
}

}  // namespace trainfs::tfs
