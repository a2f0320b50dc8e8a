#include "mount_attributes.h"

#include <sys/xattr.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <sstream>

namespace trainfs::tfs {
namespace {

constexpr size_t kAttributeBytesMax = 64 * kKiB;  // XATTR_SIZE_MAX

std::string hex(uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%" PRIx64, number);
  return text;
}

}  // namespace

Result<std::string> readMountAttribute(const std::string& point, const std::string& name) {
  std::string value(kAttributeBytesMax, '\0');
  auto full = "system.trainfs." + name;
  ssize_t length = getxattr(point.c_str(), full.c_str(), value.data(), value.size());
  if (length < 0) {
    bool unknown = errno == EOPNOTSUPP || errno == ENODATA || errno == ENOSYS;
    return Errno(unknown ? ENOTTY : errno);
  }
  value.resize(length);
  return value;
}

Result<std::vector<NameOf>> readNames(const std::string& point, InodeId inode) {
  std::vector<NameOf> names;
  for (std::string cursor; cursor != "end";) {
    auto page = readMountAttribute(
        point, "names." + hex(inode.value) + (cursor.empty() ? "" : "." + cursor));
    if (!page) return page.error();
    std::istringstream fields(*page);
    auto next = [&fields] {
      std::string field;
      std::getline(fields, field, '\0');
      return field;
    };
    auto following = next();
    if (following.empty() || following == cursor) return Errno(EPROTO);
    cursor = following;
    while (fields.peek() != EOF) {
      auto parent = next(), name = next(), path = next();
      names.push_back({{std::strtoull(parent.c_str(), nullptr, 16)}, name, path});
    }
  }
  return names;
}

std::vector<FeatureLine> parseFeatures(const std::string& text) {
  std::vector<FeatureLine> features;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    FeatureLine feature;
    std::getline(fields, feature.name, '\t');
    std::getline(fields, feature.state, '\t');
    std::getline(fields, feature.detail);
    if (!feature.state.empty()) features.push_back(feature);
  }
  return features;
}

TimerFigures TimerFigures::since(const TimerFigures& before) const {
  TimerFigures result = *this;
  result.count -= before.count;
  result.errors -= before.errors;
  result.nanoseconds -= before.nanoseconds;
  for (auto [bucket, count] : before.buckets)
    if ((result.buckets[bucket] -= count) == 0) result.buckets.erase(bucket);
  return result;
}

uint64_t TimerFigures::quantileMicroseconds(double share) const {
  uint64_t all = 0, seen = 0;
  for (auto [bucket, n] : buckets) all += n;
  for (auto [bucket, n] : buckets) {
    seen += n;
    if (static_cast<double>(seen) >= share * static_cast<double>(all))
      return std::min(uint64_t{1} << std::min(bucket, 62u), longest / 1000 + 1);
  }
  return 0;
}

MountStats MountStats::since(const MountStats& before) const {
  MountStats result = *this;
  for (auto& [name, value] : result.counters)
    if (auto found = before.counters.find(name); found != before.counters.end() && name != "since")
      value -= found->second;
  for (auto& [name, timer] : result.timers)
    if (auto found = before.timers.find(name); found != before.timers.end())
      timer = timer.since(found->second);
  return result;
}

MountStats parseStats(const std::string& text) {
  MountStats stats;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind >> name;
    if (kind == "counter") {
      uint64_t value = 0;
      if (words >> value) stats.counters[name] = value;
    } else if (kind == "timer") {
      TimerFigures timer;
      if (!(words >> timer.count >> timer.errors >> timer.nanoseconds >> timer.longest)) continue;
      for (std::string bucket; words >> bucket;) {
        unsigned index = 0;
        uint64_t count = 0;
        if (std::sscanf(bucket.c_str(), "%u:%" SCNu64, &index, &count) == 2)
          timer.buckets[index] = count;
      }
      stats.timers[name] = timer;
    }
  }
  return stats;
}

}  // namespace trainfs::tfs
