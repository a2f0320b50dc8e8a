#include "trainfs/target.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

#include "small_file.h"
#include "toml_error.h"
#include "trainfs/config.h"

namespace trainfs {

namespace {

constexpr size_t kTargetFileBytesMax = 64 * 1024;

std::string errnoText() {
  return std::strerror(errno);
}

bool isUuid(const std::string& text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (dash ? text[i] != '-' : !hex) return false;
  }
  return true;
}

bool isFsname(const std::string& text) {
  return !text.empty() && text.size() <= kFsnameBytesMax &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '_' || c == '-';
         });
}

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  operator int() const { return fd_; }

 private:
  int fd_;
};

// Takes keys out of the table one by one, so that what is left is what nobody knows.
class KeyReader {
 public:
  KeyReader(std::string path, toml::table table)
      : path_(std::move(path)), table_(std::move(table)) {
    for (auto& [key, node] : table_) lines_.emplace(key.str(), key.source().begin.line);
  }

  template <typename T>
  T require(const char* key) {
    auto* node = table_.get(key);
    if (node == nullptr) return fail(key, "is missing"), T{};
    auto value = node->value_exact<T>();
    if (!value) return fail(key, "has the wrong type"), T{};
    table_.erase(key);
    return *value;
  }

  std::vector<std::string> strings(const char* key) {
    std::vector<std::string> values;
    auto* node = table_.get(key);
    if (node == nullptr) return values;
    auto* array = node->as_array();
    if (array == nullptr) return fail(key, "must be an array of strings"), values;
    for (auto& element : *array) {
      auto text = element.value_exact<std::string>();
      if (!text) return fail(key, "must be an array of strings"), values;
      values.push_back(*text);
    }
    table_.erase(key);
    return values;
  }

  void fail(const std::string& key, const std::string& what) {
    if (!wrong_.empty()) return;
    auto line = lines_.find(key);
    wrong_ = wrongKey(path_, line == lines_.end() ? 0 : line->second, key, what);
  }

  std::string finish() {
    if (wrong_.empty() && !table_.empty())
      fail(std::string(table_.begin()->first.str()), "is unknown");
    return wrong_;
  }
  bool ok() const { return wrong_.empty(); }

 private:
  std::string path_;
  toml::table table_;
  std::map<std::string, size_t> lines_;
  std::string wrong_;
};

uint32_t readIndex(KeyReader& keys) {
  int64_t index = keys.require<int64_t>("index");
  if (index < 0 || index > UINT32_MAX) return keys.fail("index", "is out of range"), 0;
  return static_cast<uint32_t>(index);
}

std::string readKeys(KeyReader& keys, Target& target) {
  int64_t version = keys.require<int64_t>("version");
  if (keys.ok() && version != kTargetVersion)
    keys.fail("version", "is " + std::to_string(version) + ", only " +
                             std::to_string(kTargetVersion) + " is known here");
  // What an unknown version has further down is not ours to judge.
  if (!keys.ok()) return keys.finish();
  auto kind = keys.require<std::string>("kind");
  if (keys.ok() && kind != "mdt" && kind != "ost")
    keys.fail("kind", "is '" + kind + "', must be 'mdt' or 'ost'");
  target.kind = kind == "mdt" ? Target::Kind::kMdt : Target::Kind::kOst;
  target.fsname = keys.require<std::string>("fsname");
  target.index = readIndex(keys);
  target.uuid = keys.require<std::string>("uuid");
  target.mgs = keys.require<bool>("mgs");
  target.mgsNodes = keys.strings("mgsnode");
  return keys.finish();
}

bool writeAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t wrote = write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    bytes.remove_prefix(wrote);
  }
  return true;
}

}  // namespace

std::string targetName(const Target& target) {
  char suffix[16];
  std::snprintf(suffix, sizeof suffix, "-%s%04x", target.kind == Target::Kind::kMdt ? "MDT" : "OST",
                target.index);
  return target.fsname + suffix;
}

std::string checkTarget(const Target& target) {
  bool mdt = target.kind == Target::Kind::kMdt;
  if (!isFsname(target.fsname))
    return "fsname '" + target.fsname + "' must be 1 to " + std::to_string(kFsnameBytesMax) +
           " characters of A-Z, a-z, 0-9, '_' and '-'";
  uint32_t indexMax = mdt ? kMdtIndexMax : kOstIndexMax;
  if (target.index > indexMax)
    return "index " + std::to_string(target.index) + " is out of range, 0 to " +
           std::to_string(indexMax);
  if (!isUuid(target.uuid)) return "uuid '" + target.uuid + "' is not a UUID";
  if (target.mgs && !mdt) return "mgs is for an MDT";
  if (target.mgs && target.index != 0) return "mgs is for the MDT of index 0";
  bool needsMgs = !target.mgs;
  if (needsMgs && target.mgsNodes.empty()) return "mgsnode is missing: where is the MGS?";
  if (target.mgsNodes.size() > kMgsNodesMax)
    return "mgsnode has " + std::to_string(target.mgsNodes.size()) + " entries, at most " +
           std::to_string(kMgsNodesMax);
  for (auto& node : target.mgsNodes) {
    HostPort parsed;
    if (!parseHostPort(node, kDefaultMdsPort, parsed) || parsed.port == 0 || parsed.host == "*")
      return "mgsnode '" + node + "' is not HOST[:PORT]";
  }
  return "";
}

std::string decodeTarget(const std::string& content, const std::string& path, Target& target) {
  try {
    KeyReader keys(path, toml::parse(content, path));
    Target decoded;
    if (auto wrong = readKeys(keys, decoded); !wrong.empty()) return wrong;
    if (auto wrong = checkTarget(decoded); !wrong.empty()) return path + ": " + wrong;
    target = std::move(decoded);
    return "";
  } catch (const toml::parse_error& error) {
    return parseErrorText(path, content, error);
  }
}

std::string encodeTarget(const Target& target) {
  std::string text = "# A trainfs target, written by mkfs.trainfs. See docs/format-target.md.\n";
  text += "version = " + std::to_string(kTargetVersion) + "\n";
  text += std::string("kind = \"") + (target.kind == Target::Kind::kMdt ? "mdt" : "ost") + "\"\n";
  text += "fsname = \"" + target.fsname + "\"\n";
  text += "index = " + std::to_string(target.index) + "\n";
  text += "uuid = \"" + target.uuid + "\"\n";
  text += std::string("mgs = ") + (target.mgs ? "true" : "false") + "\n";
  text += "mgsnode = [";
  for (auto& node : target.mgsNodes)
    text += (&node == &target.mgsNodes[0] ? "\"" : ", \"") + node + "\"";
  return text + "]\n";
}

std::string loadTarget(const std::string& directory, Target& target) {
  std::string path = directory + "/" + kTargetFile, content;
  if (auto wrong = readSmallFile(path, kTargetFileBytesMax, content); !wrong.empty()) return wrong;
  return decodeTarget(content, path, target);
}

std::string saveTarget(const std::string& directory, const Target& target) {
  std::string path = directory + "/" + kTargetFile, draft = directory + "/" + kTargetDraftFile;
  if (auto wrong = checkTarget(target); !wrong.empty()) return path + ": " + wrong;
  {
    Fd fd(open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (fd < 0) return draft + ": " + errnoText();
    if (!writeAll(fd, encodeTarget(target)) || fsync(fd) != 0) return draft + ": " + errnoText();
  }
  if (rename(draft.c_str(), path.c_str()) != 0) return path + ": " + errnoText();
  Fd parent(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent < 0 || fsync(parent) != 0) return directory + ": " + errnoText();
  return "";
}

TargetLock::~TargetLock() {
  if (fd_ >= 0) close(fd_);
}

std::string lockTarget(const std::string& directory, TargetLock& lock) {
  TargetLock taken;
  taken.fd_ = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (taken.fd_ < 0) return directory + ": " + errnoText();
  while (flock(taken.fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    return directory + ": " + (errno == EWOULDBLOCK ? "in use by another process" : errnoText());
  }
  lock = std::move(taken);
  return "";
}

}  // namespace trainfs
