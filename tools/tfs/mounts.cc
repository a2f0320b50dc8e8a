#include "mounts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "trainfs/config.h"

namespace trainfs::tfs {
namespace {

// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescape(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); i++) {
    bool escape = text[i] == '\\' && i + 3 < text.size() &&
                  text.find_first_not_of("01234567", i + 1) >= i + 4;
    if (escape) {
      plain += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

void parseSource(Mount& mount) {
  size_t colon = mount.source.find(":/");
  if (colon == std::string::npos) return;
  std::istringstream hosts(mount.source.substr(0, colon));
  std::vector<MdsAddress> servers;
  for (std::string host; std::getline(hosts, host, ',');) {
    HostPort parsed;
    if (!parseHostPort(host, kDefaultMdsPort, parsed)) return;
    servers.push_back({parsed.host, parsed.port});
  }
  mount.servers = std::move(servers);
  mount.fsname = mount.source.substr(colon + 2);
  mount.fsname.resize(std::min(mount.fsname.find('/'), mount.fsname.size()));  // a directory of it
}

bool isBelow(const std::string& path, const std::string& point) {
  if (path.compare(0, point.size(), point) != 0) return false;
  return path.size() == point.size() || point.back() == '/' || path[point.size()] == '/';
}

const Mount* deepest(const std::vector<Mount>& mounts, const std::string& path) {
  const Mount* best = nullptr;
  for (const Mount& mount : mounts)
    if (isBelow(path, mount.point) && (!best || mount.point.size() > best->point.size()))
      best = &mount;
  return best;
}

}  // namespace

// ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [OPTIONAL...] - TYPE SOURCE OPTIONS; see proc(5).
std::vector<Mount> parseMountinfo(const std::string& text) {
  std::vector<Mount> mounts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word, point, type, source;
    for (int i = 0; i < 5; i++) words >> point;
    while (words >> word && word != "-") {
    }
    if (!(words >> type >> source) || (type != "trainfs" && type != "fuse.trainfs")) continue;
    Mount mount;
    mount.point = unescape(point);
    mount.source = unescape(source);
    parseSource(mount);
    std::erase_if(mounts, [&](const Mount& other) { return other.point == mount.point; });
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::vector<Mount> trainfsMounts() {
  std::ifstream file("/proc/self/mountinfo");
  std::ostringstream text;
  text << file.rdbuf();
  return parseMountinfo(text.str());
}

const Mount* mountOf(const std::vector<Mount>& mounts, const std::string& path) {
  std::error_code error;
  auto absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  if (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  if (const Mount* mount = deepest(mounts, absolute)) return mount;
  auto real = std::filesystem::canonical(path, error);
  return error ? nullptr : deepest(mounts, real.string());
}

}  // namespace trainfs::tfs
