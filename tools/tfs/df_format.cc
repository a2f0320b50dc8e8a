#include "df_format.h"

#include <spdlog/fmt/fmt.h>

#include "striping/placement.h"

namespace trainfs::tfs {
namespace {

struct FieldName {
  const char* name;
  DfField field;
};
constexpr FieldName kFieldNames[] = {
    {"source", DfField::kSource},      {"uuid", DfField::kSource},
    {"device", DfField::kSource},      {"size", DfField::kTotal},
    {"total", DfField::kTotal},        {"btotal", DfField::kTotal},
    {"used", DfField::kUsed},          {"bused", DfField::kUsed},
    {"free", DfField::kFree},          {"bfree", DfField::kFree},
    {"avail", DfField::kAvailable},    {"bavail", DfField::kAvailable},
    {"pcent", DfField::kPercent},      {"bpct", DfField::kPercent},
    {"usepct", DfField::kPercent},     {"pct", DfField::kPercent},
    {"itotal", DfField::kInodes},      {"inodes", DfField::kInodes},
    {"iused", DfField::kInodesUsed},   {"iavail", DfField::kInodesFree},
    {"ifree", DfField::kInodesFree},   {"ipcent", DfField::kInodesPercent},
    {"ipct", DfField::kInodesPercent}, {"iusepct", DfField::kInodesPercent},
    {"target", DfField::kTarget},      {"state", DfField::kState},
};

const std::vector<DfField> kSpaceFields = {DfField::kSource,    DfField::kTotal,   DfField::kUsed,
                                           DfField::kAvailable, DfField::kPercent, DfField::kTarget,
                                           DfField::kState};
const std::vector<DfField> kInodeFields = {
    DfField::kSource,        DfField::kInodes, DfField::kInodesUsed, DfField::kInodesFree,
    DfField::kInodesPercent, DfField::kTarget, DfField::kState};

std::string cooked(uint64_t value, const DfOptions& options) {
  if (!options.human) return fmt::format("{:>11}", value);
  double base = options.si ? 1000 : 1024;
  const char* suffix = options.si ? "kMGTPEZY" : "KMGTPEZY";
  auto scaled = static_cast<double>(value);
  int steps = 0;
  for (; scaled > base; steps++) scaled /= base;
  if (steps == 0) return fmt::format("{:>11}", value);
  return fmt::format("{:>10.1f}{}", scaled, suffix[steps - 1]);
}

std::string bytes(uint64_t value, const DfOptions& options) {
  return cooked(options.human ? value : value / 1024, options);
}

// Rounded up, as df(1).
std::string percent(uint64_t used, uint64_t available) {
  unsigned __int128 all = static_cast<unsigned __int128>(used) + available;
  auto share =
      all == 0
          ? 0
          : static_cast<unsigned>((100 * static_cast<unsigned __int128>(used) + all - 1) / all);
  return fmt::format("{:3}%", share);
}

uint64_t minus(uint64_t a, uint64_t b) {
  return a > b ? a - b : 0;
}

std::string heading(DfField field, const DfOptions& options) {
  switch (field) {
    case DfField::kSource:
      return fmt::format("{:<20}", "UUID");
    case DfField::kTotal:
      return fmt::format("{:>11}", options.human ? "bytes" : "1K-blocks");
    case DfField::kUsed:
      return fmt::format("{:>11}", "Used");
    case DfField::kFree:
      return fmt::format("{:>11}", "Free");
    case DfField::kAvailable:
      return fmt::format("{:>11}", "Available");
    case DfField::kPercent:
      return "Use%";
    case DfField::kInodes:
      return fmt::format("{:>11}", "Inodes");
    case DfField::kInodesUsed:
      return fmt::format("{:>11}", "IUsed");
    case DfField::kInodesFree:
      return fmt::format("{:>11}", "IFree");
    case DfField::kInodesPercent:
      return "IUse%";
    case DfField::kTarget:
      return "Mounted on";
    case DfField::kState:
      return "";
  }
  return "";
}

// What lfs appends when something is wrong: S out of space, I out of inodes.
std::string state(const TargetStatus& target) {
  std::string letters;
  if (striping::isFull({target.index, true, target.totalBytes, target.availableBytes}))
    letters += 'S';
  if (target.files > 0 && target.freeFiles == 0) letters += 'I';
  return letters;
}

struct Row {
  std::string source, mountedOn;
  const TargetStatus& target;
  bool summary = false;
};

std::string value(DfField field, const Row& row, const DfOptions& options) {
  const TargetStatus& target = row.target;
  uint64_t used = minus(target.totalBytes, target.freeBytes);
  uint64_t inodesUsed = minus(target.files, target.freeFiles);
  switch (field) {
    case DfField::kSource:
      return fmt::format("{:<20}", row.source);
    case DfField::kTotal:
      return bytes(target.totalBytes, options);
    case DfField::kUsed:
      return bytes(used, options);
    case DfField::kFree:
      return bytes(target.freeBytes, options);
    case DfField::kAvailable:
      return bytes(target.availableBytes, options);
    case DfField::kPercent:
      return percent(used, target.availableBytes);
    case DfField::kInodes:
      return cooked(target.files, options);
    case DfField::kInodesUsed:
      return cooked(inodesUsed, options);
    case DfField::kInodesFree:
      return cooked(target.freeFiles, options);
    case DfField::kInodesPercent:
      return percent(inodesUsed, target.freeFiles);
    case DfField::kTarget:
      return row.mountedOn;
    case DfField::kState:
      return row.summary ? "" : state(target);
  }
  return "";
}

template <typename Cell>
std::string joined(const std::vector<DfField>& fields, Cell cell) {
  std::string line;
  for (size_t i = 0; i < fields.size(); i++) {
    std::string text = cell(fields[i]);
    if (i > 0 && !text.empty()) line += " ";
    line += text;
  }
  return line + "\n";
}

}  // namespace

bool parseDfField(const std::string& name, DfField& field) {
  for (const FieldName& known : kFieldNames)
    if (name == known.name) return field = known.field, true;
  return false;
}

std::string dfFieldNames() {
  std::string names;
  for (const FieldName& known : kFieldNames)
    names += (names.empty() ? "" : " ") + std::string(known.name);
  return names;
}

TargetStatus summarise(const ClusterStatus& status) {
  TargetStatus sum;
  auto addSpace = [&sum](const TargetStatus& target) {
    sum.totalBytes += target.totalBytes;
    sum.freeBytes += target.freeBytes;
    sum.availableBytes += target.availableBytes;
  };
  uint64_t objects = 0, freeObjects = 0;
  for (const TargetStatus& ost : status.osts) {
    if (!ost.active) continue;
    addSpace(ost);
    objects += ost.files;
    freeObjects += ost.freeFiles;
  }
  for (const TargetStatus& mdt : status.mdts) {
    if (!mdt.active) continue;
    if (status.osts.empty()) addSpace(mdt);
    sum.files += mdt.files;
    sum.freeFiles += mdt.freeFiles;
  }
  if (objects > 0 && freeObjects < sum.freeFiles) {
    sum.files = minus(sum.files, sum.freeFiles) + freeObjects;
    sum.freeFiles = freeObjects;
  }
  return sum;
}

std::string formatDf(const ClusterStatus& status, const std::string& mountPoint,
                     const DfOptions& options) {
  const auto& fields = !options.fields.empty() ? options.fields
                       : options.inodes        ? kInodeFields
                                               : kSpaceFields;
  bool one = options.mdt || options.ost;
  bool header = options.header && !one && !options.onlySummary;
  std::string text;
  if (header) text += joined(fields, [&](DfField field) { return heading(field, options); });
  auto addTargets = [&](const std::vector<TargetStatus>& targets, const char* kind,
                        std::optional<uint32_t> only) {
    for (const TargetStatus& target : targets) {
      if (only && target.index != *only) continue;
      Row row{fmt::format("{}-{}{:04x}_UUID", status.fsname, kind, target.index),
              fmt::format("{}[{}:{}]", mountPoint, kind, target.index), target};
      if (target.active)
        text += joined(fields, [&](DfField field) { return value(field, row, options); });
      else
        text += fmt::format("{:<20}: inactive device\n", row.source);
    }
  };
  if (!options.onlySummary && options.mdts) addTargets(status.mdts, "MDT", options.mdt);
  if (!options.onlySummary && options.osts) addTargets(status.osts, "OST", options.ost);
  if (!header && !options.onlySummary) return text;
  TargetStatus sum = summarise(status);
  Row row{"filesystem_summary:", mountPoint, sum, true};
  if (header) text += "\n";
  text += joined(fields, [&](DfField field) { return value(field, row, options); });
  if (header) text += "\n";
  return text;
}

}  // namespace trainfs::tfs
