// tfs stats: what a mount has done, since it was made or from one look to the next.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "command.h"
#include "json_text.h"
#include "mount_attributes.h"
#include "mounts.h"

namespace trainfs::tfs {
namespace {

constexpr double kIntervalMax = 86400;

struct Request {
  double interval = 0;      // seconds; 0: once
  unsigned long count = 0;  // looks; 0: until interrupted
  bool json = false;
};

nlohmann::json toJson(const TimerFigures& timer) {
  double average = timer.count == 0 ? 0
                                    : static_cast<double>(timer.nanoseconds) / 1e3 /
                                          static_cast<double>(timer.count);
  return {{"count", timer.count},
          {"errors", timer.errors},
          {"total_us", timer.nanoseconds / 1000},
          {"average_us", average},
          {"p50_us", timer.quantileMicroseconds(0.5)},
          {"p99_us", timer.quantileMicroseconds(0.99)},
          {"longest_us", timer.longest / 1000}};
}

// "request.read" becomes {"request": {"read": ...}}.
nlohmann::json toJson(const MountStats& stats, const std::string& point) {
  nlohmann::json all = {{"mounted_on", point}};
  auto place = [&all](const std::string& name) -> nlohmann::json& {
    size_t dot = name.find('.');
    return dot == name.npos ? all[name] : all[name.substr(0, dot)][name.substr(dot + 1)];
  };
  for (auto& [name, value] : stats.counters) place(name) = value;
  for (auto& [name, timer] : stats.timers) place(name) = toJson(timer);
  return all;
}

void print(const MountStats& stats, const std::string& point) {
  std::printf("%s\n  %-22s %12s %8s %10s %10s %10s %12s\n", point.c_str(), "", "count", "errors",
              "average", "50% below", "99% below", "longest [us]");
  for (auto& [name, timer] : stats.timers) {
    if (timer.count == 0) continue;
    std::printf("  %-22s %12lu %8lu %10lu %10lu %10lu %12lu\n", name.c_str(), timer.count,
                timer.errors, timer.nanoseconds / 1000 / timer.count,
                timer.quantileMicroseconds(0.5), timer.quantileMicroseconds(0.99),
                timer.longest / 1000);
  }
  for (auto& [name, value] : stats.counters)
    if (name != "since") std::printf("  %-22s %12lu\n", name.c_str(), value);
}

bool parseSeconds(const std::string& text, double& seconds) {
  char* end = nullptr;
  seconds = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && seconds >= 0.1 && seconds <= kIntervalMax;
}

std::string take(int option, const OptionReader& reader, Request& request) {
  std::string value = reader.argument();
  char* end = nullptr;
  switch (option) {
    case 'i':
      if (!parseSeconds(value, request.interval))
        return "invalid interval '" + value + "': seconds, from 0.1 to 86400";
      return {};
    case 'n':
      request.count = std::strtoul(value.c_str(), &end, 10);
      if (*end != '\0' || request.count == 0) return "invalid count '" + value + "'";
      return {};
    default:
      request.json = true;
      return {};
  }
}

int showAll(const std::vector<std::string>& points, const Request& request,
            std::map<std::string, MountStats>& before) {
  int result = 0;
  for (const std::string& point : points) {
    auto text = readMountAttribute(point, "stats");
    if (!text) {
      result = failure(kStats.name, point + ": " + std::strerror(text.error().code()),
                       text.error().code());
      continue;
    }
    auto now = parseStats(*text);
    auto shown = before.contains(point) ? now.since(before[point]) : now;
    if (request.json)
      std::printf("%s\n", jsonLine(toJson(shown, point)).c_str());
    else
      print(shown, point);
    before[point] = std::move(now);
  }
  return result;
}

int run(int argc, char** argv) {
  constexpr option kLongOptions[] = {{"interval", required_argument, nullptr, 'i'},
                                     {"count", required_argument, nullptr, 'n'},
                                     {"json", no_argument, nullptr, kLongJson},
                                     {"help", no_argument, nullptr, kLongHelp},
                                     {nullptr, 0, nullptr, 0}};
  const char* name = kStats.name;
  Request request;
  OptionReader reader(argc, argv, ":hi:n:", kLongOptions);
  for (int option; (option = reader.next()) != -1;) {
    if (option == '?' || option == ':') return usageError(name, reader.complaint(option));
    if (option == 'h' || option == kLongHelp) return std::fputs(kStats.help, stdout), 0;
    if (auto error = take(option, reader, request); !error.empty()) return usageError(name, error);
  }
  auto mounts = trainfsMounts();
  std::vector<std::string> points;
  for (int i = reader.firstPositional(); i < argc; i++) {
    const Mount* mount = mountOf(mounts, argv[i]);
    if (mount == nullptr)
      return failure(name, std::string("'") + argv[i] + "' is not on a mounted trainfs file system",
                     EOPNOTSUPP);
    points.push_back(mount->point);
  }
  if (reader.firstPositional() == argc)
    for (const Mount& mount : mounts) points.push_back(mount.point);
  if (points.empty()) return failure(name, "no trainfs file system is mounted", ENODEV);
  std::map<std::string, MountStats> before;
  int result = showAll(points, request, before);
  if (request.interval == 0) return result;
  for (unsigned long look = 1; request.count == 0 || look < request.count; look++) {
    usleep(static_cast<useconds_t>(request.interval * 1e6));
    result = showAll(points, request, before);
  }
  return result;
}

}  // namespace

const Command kStats = {"stats", "show what a mount has done: requests, times, bytes",
                        R"(Usage: tfs stats [OPTION]... [PATH]...
Shows what the client of the mounts that PATHs lie on, or of all, has done since it was mounted: requests of the kernel
by kind (request.*), calls to the MDS (mds.*), requests to OSTs (ost.*): how many, how many failed, and how long they
took in microseconds; bytes; and how often something had to be sent again. What the kernel answered from its own
caches never came to the client. No server is asked.

  -i, --interval SECONDS again every SECONDS, then with what has changed in between
  -n, --count N          with --interval: end after N looks; otherwise at Ctrl-C
      --json             as JSON, one object (line) for each mount and look

Examples:
  tfs stats /mnt/trainfs
  tfs stats --interval 1
  tfs stats --json | jq .request.read.p99_us
)",
                        run};

}  // namespace trainfs::tfs
