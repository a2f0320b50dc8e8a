#include "lib/disk_recorder.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace trainfs::test {

namespace {

constexpr uint64_t kSectorBytes = 512;

std::atomic<DiskRecorder*> activeRecorder{nullptr};

[[noreturn]] void giveUp(const std::string& what) {
  std::fprintf(stderr, "disk recorder: %s\n", what.c_str());
  std::abort();
}

std::string contentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string pathOf(int fd) {
  char path[4096];
  auto length = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  return length < 0 ? "" : std::string(path, length);
}

void overwrite(std::string& content, uint64_t offsetBytes, std::string_view bytes) {
  if (content.size() < offsetBytes + bytes.size()) content.resize(offsetBytes + bytes.size());
  std::memcpy(content.data() + offsetBytes, bytes.data(), bytes.size());
}

// Some sectors of it.
void overwriteTorn(std::string& content, uint64_t offsetBytes, std::string_view bytes,
                   Random& random) {
  while (!bytes.empty()) {
    size_t part = std::min<uint64_t>(bytes.size(), kSectorBytes - offsetBytes % kSectorBytes);
    if (random.chance(50)) overwrite(content, offsetBytes, bytes.substr(0, part));
    offsetBytes += part;
    bytes.remove_prefix(part);
  }
}

}  // namespace

DiskRecorder* DiskRecorder::active() {
  return activeRecorder.load(std::memory_order_acquire);
}

DiskRecorder::DiskRecorder(const std::string& directory)
    : directory_(std::filesystem::canonical(directory)) {
  addFile(identityOf(directory_), true);
  addBaseline(kRoot, directory_);
  names_ = baselineNames_;
  DiskRecorder* none = nullptr;
  if (!activeRecorder.compare_exchange_strong(none, this)) giveUp("one is there already");
}

DiskRecorder::~DiskRecorder() {
  activeRecorder.store(nullptr, std::memory_order_release);
}

void DiskRecorder::addBaseline(FileId directory, const std::string& path) {
  std::set<std::string> names;  // in an order that replays
  for (auto& entry : std::filesystem::directory_iterator(path))
    names.insert(entry.path().filename());
  for (auto& name : names) {
    auto at = path + "/" + name;
    struct stat status{};
    if (lstat(at.c_str(), &status) != 0) giveUp(at + ": " + std::strerror(errno));
    Identity identity{status.st_dev, status.st_ino};
    auto found = known_.find(identity);
    bool hardLink = found != known_.end();
    FileId file = hardLink ? found->second : addFile(identity, S_ISDIR(status.st_mode));
    baselineNames_[{directory, name}] = file;
    if (S_ISDIR(status.st_mode)) {
      addBaseline(file, at);
    } else if (S_ISREG(status.st_mode) && !hardLink) {
      files_[file].baseline = contentOf(at);
      files_[file].sizeBytes = files_[file].baseline.size();
    }
  }
}

DiskRecorder::Identity DiskRecorder::identityOf(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) giveUp(path + ": " + std::strerror(errno));
  return {status.st_dev, status.st_ino};
}

DiskRecorder::FileId DiskRecorder::addFile(const Identity& identity, bool directory) {
  FileId file = files_.size();
  files_.push_back({.directory = directory, .baseline = {}});
  known_[identity] = file;  // of a file that is gone, the number may come again
  return file;
}

size_t DiskRecorder::operations() const {
  std::lock_guard lock(mutex_);
  return operations_.size();
}

// ---- recording ----

DiskRecorder::FileId DiskRecorder::fileOf(int fd) const {
  struct stat status{};
  if (fstat(fd, &status) != 0) return kNoFile;
  auto found = known_.find({status.st_dev, status.st_ino});
  if (found != known_.end()) return found->second;
  if (S_ISREG(status.st_mode) && pathOf(fd).starts_with(directory_ + "/"))
    giveUp(pathOf(fd) + " was made by a call that is not watched");
  return kNoFile;
}

bool DiskRecorder::findPlace(int directoryFd, const char* path, Place& place) const {
  std::string_view whole(path);
  while (whole.size() > 1 && whole.ends_with('/')) whole.remove_suffix(1);
  auto slash = whole.rfind('/');
  std::string parent(slash == whole.npos ? "." : slash == 0 ? "/" : whole.substr(0, slash));
  struct stat status{};
  if (fstatat(directoryFd, parent.c_str(), &status, 0) != 0) return false;
  std::lock_guard lock(mutex_);
  auto found = known_.find({status.st_dev, status.st_ino});
  if (found == known_.end() || !files_[found->second].directory) return false;
  place = {found->second, std::string(slash == whole.npos ? whole : whole.substr(slash + 1))};
  return true;
}

bool DiskRecorder::exists(const Place& place) const {
  std::lock_guard lock(mutex_);
  return names_.contains(place);
}

void DiskRecorder::made(const Place& place, int directoryFd, const char* path) {
  struct stat status{};
  if (fstatat(directoryFd, path, &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  std::lock_guard lock(mutex_);
  FileId file = addFile({status.st_dev, status.st_ino}, S_ISDIR(status.st_mode));
  names_[place] = file;
  operations_.push_back(Naming{{{place, file}}});
}

void DiskRecorder::removed(const Place& place) {
  std::lock_guard lock(mutex_);
  names_.erase(place);
  operations_.push_back(Naming{{{place, kNoFile}}});
}

void DiskRecorder::renamed(const Place& from, const Place& to, bool exchange) {
  std::lock_guard lock(mutex_);
  FileId moved = names_.at(from), other = exchange ? names_.at(to) : kNoFile;
  if (names_.contains(to) && names_.at(to) == moved) return;  // two names of one file: no change
  Naming naming{{{from, other}, {to, moved}}};
  for (auto& [place, file] : naming.changes) {
    if (file == kNoFile)
      names_.erase(place);
    else
      names_[place] = file;
  }
  operations_.push_back(std::move(naming));
}

void DiskRecorder::linked(const Place& from, const Place& to) {
  std::lock_guard lock(mutex_);
  names_[to] = names_.at(from);
  operations_.push_back(Naming{{{to, names_[to]}}});
}

void DiskRecorder::noteWrite(FileId file, uint64_t offsetBytes, std::string bytes, bool durable) {
  files_[file].sizeBytes = std::max<uint64_t>(files_[file].sizeBytes, offsetBytes + bytes.size());
  operations_.push_back(Write{file, offsetBytes, std::move(bytes), durable});
}

void DiskRecorder::wrote(int fd, uint64_t offsetBytes, std::string_view bytes, bool durable) {
  std::lock_guard lock(mutex_);
  FileId file = fileOf(fd);
  if (file != kNoFile && !bytes.empty()) noteWrite(file, offsetBytes, std::string(bytes), durable);
}

void DiskRecorder::wrote(int fd, uint64_t offsetBytes, std::string_view bytes) {
  wrote(fd, offsetBytes, bytes, false);
}

void DiskRecorder::resized(int fd, uint64_t sizeBytes) {
  std::lock_guard lock(mutex_);
  FileId file = fileOf(fd);
  if (file == kNoFile) return;
  files_[file].sizeBytes = sizeBytes;
  operations_.push_back(Resize{file, sizeBytes});
}

void DiskRecorder::allocated(int fd, int mode, uint64_t offsetBytes, uint64_t lengthBytes) {
  std::lock_guard lock(mutex_);
  FileId file = fileOf(fd);
  if (file == kNoFile) return;
  if ((mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0)
    giveUp("fallocate() of a mode that is not known here");
  uint64_t end = offsetBytes + lengthBytes, size = files_[file].sizeBytes;
  if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0 && offsetBytes < size)
    noteWrite(file, offsetBytes, std::string(std::min(end, size) - offsetBytes, '\0'), false);
  if ((mode & FALLOC_FL_KEEP_SIZE) == 0 && end > size) {
    files_[file].sizeBytes = end;
    operations_.push_back(Resize{file, end});
  }
}

DiskRecorder::SubmittedSync DiskRecorder::syncSubmitted(int fd) {
  std::lock_guard lock(mutex_);
  FileId file = fileOf(fd);
  return {.file = file, .covers = operations_.size(), .known = file != kNoFile};
}

void DiskRecorder::syncCompleted(const SubmittedSync& sync) {
  std::lock_guard lock(mutex_);
  if (sync.known) operations_.push_back(Sync{sync.file, sync.covers});
}

// ---- replaying ----

size_t DiskRecorder::coveredUpTo(FileId file, size_t n) const {
  size_t covered = 0;
  for (size_t i = 0; i < n; ++i) {
    auto* sync = std::get_if<Sync>(&operations_[i]);
    if (sync != nullptr && sync->file == file) covered = std::max(covered, sync->covers);
  }
  return covered;
}

// One outcome of how many of `unsynced` changes that happen in order are there.
static size_t somePrefix(size_t unsynced, bool none, bool all, Random& random) {
  return none ? 0 : all ? unsynced : random.between(0, unsynced);
}

DiskRecorder::Names DiskRecorder::namesAfter(size_t n, Mood mood, Random& random) const {
  std::vector<const Naming*> namings;
  std::map<FileId, size_t> covered;  // of directories
  size_t forced = 0;
  for (size_t i = 0; i < n; ++i) {
    auto* naming = std::get_if<Naming>(&operations_[i]);
    if (naming == nullptr) continue;
    namings.push_back(naming);
    for (auto& [place, file] : naming->changes) {
      auto [at, isNew] = covered.try_emplace(place.directory, 0);
      if (isNew) at->second = coveredUpTo(place.directory, n);
      if (i < at->second) forced = namings.size();
    }
  }
  size_t kept = forced + somePrefix(namings.size() - forced, mood == Mood::kDropsAll,
                                    mood == Mood::kKeepsAll, random);
  Names names = baselineNames_;
  for (size_t i = 0; i < kept; ++i)
    for (auto& [place, file] : namings[i]->changes) {
      if (file == kNoFile)
        names.erase(place);
      else
        names[place] = file;
    }
  return names;
}

std::string DiskRecorder::contentAfter(FileId file, size_t n, Mood mood, Random& random) const {
  size_t covered = coveredUpTo(file, n);
  // First which changes of its size are there, then the data.
  uint64_t size = files_[file].baseline.size();
  std::vector<std::pair<size_t, uint64_t>> sizes;  // operation, size from there on
  size_t forced = 0;
  for (size_t i = 0; i < n; ++i) {
    uint64_t next = size;
    auto* write = std::get_if<Write>(&operations_[i]);
    auto* resize = std::get_if<Resize>(&operations_[i]);
    if (write != nullptr && write->file == file)
      next = std::max<uint64_t>(size, write->offsetBytes + write->bytes.size());
    if (resize != nullptr && resize->file == file) next = resize->sizeBytes;
    if (next != size) sizes.emplace_back(i, size = next);
    bool durable = write != nullptr && write->file == file && write->durable;
    if (i < covered || durable) forced = sizes.size();
  }
  sizes.resize(forced + somePrefix(sizes.size() - forced, mood == Mood::kDropsAll,
                                   mood == Mood::kKeepsAll, random));

  std::string content = files_[file].baseline;
  size = content.size();
  auto change = sizes.begin();
  for (size_t i = 0; i < n; ++i) {
    auto* write = std::get_if<Write>(&operations_[i]);
    if (write != nullptr && write->file == file) {
      auto fate = mood == Mood::kDropsAll   ? Fate::kDropped
                  : mood == Mood::kKeepsAll ? Fate::kKept
                                            : static_cast<Fate>(random.between(0, 2));
      if (i < covered || write->durable) fate = Fate::kKept;
      if (fate == Fate::kKept) overwrite(content, write->offsetBytes, write->bytes);
      if (fate == Fate::kTorn) overwriteTorn(content, write->offsetBytes, write->bytes, random);
    }
    if (change != sizes.end() && change->first == i) {
      size = change++->second;
      if (content.size() > size) content.resize(size);
    }
  }
  content.resize(size);
  return content;
}

void DiskRecorder::replay(size_t n, Random& random, const std::string& into) const {
  auto mood = random.chance(20)   ? Mood::kDropsAll
              : random.chance(20) ? Mood::kKeepsAll
                                  : Mood::kMixed;
  make(planOf(n, mood, random), into);
}

void DiskRecorder::kill(size_t n, const std::string& into) {
  Random unused(0);
  auto plan = planOf(n, Mood::kKeepsAll, unused);
  make(plan, into);
  std::lock_guard lock(mutex_);
  operations_.erase(operations_.begin() + static_cast<ptrdiff_t>(n), operations_.end());
  names_ = namesAfter(n, Mood::kKeepsAll, unused);
  directory_ = std::filesystem::canonical(into);
  known_ = {{identityOf(directory_), kRoot}};
  for (auto& planned : plan) {
    known_[identityOf(directory_ + planned.path)] = planned.file;
    if (planned.content) files_[planned.file].sizeBytes = planned.content->size();
  }
}

// Without the lock: these changes are watched, too.
void DiskRecorder::make(const Plan& plan, const std::string& into) {
  std::map<FileId, std::string> paths;
  for (auto& [file, path, content] : plan) {
    auto [first, isFirst] = paths.try_emplace(file, into + path);
    if (!isFirst)
      std::filesystem::create_hard_link(first->second, into + path);
    else if (content)
      std::ofstream(into + path, std::ios::binary) << *content;
    else
      std::filesystem::create_directory(into + path);
  }
}

DiskRecorder::Plan DiskRecorder::planOf(size_t n, Mood mood, Random& random) const {
  std::lock_guard lock(mutex_);
  if (n > operations_.size()) giveUp("a cut after the end");
  // A directory is numbered before what was made in it, so its path is known first.
  std::vector<std::pair<FileId, Place>> ordered;
  for (auto& [place, file] : namesAfter(n, mood, random)) ordered.emplace_back(file, place);
  std::sort(ordered.begin(), ordered.end());
  std::map<FileId, std::string> directories{{kRoot, ""}}, contents;
  Plan plan;
  for (auto& [file, place] : ordered) {
    auto parent = directories.find(place.directory);
    if (parent == directories.end()) continue;  // made in a directory that is not there
    auto path = parent->second + "/" + place.name;
    if (files_[file].directory) {
      directories[file] = path;
      plan.push_back({file, path, std::nullopt});
      continue;
    }
    if (!contents.contains(file)) contents[file] = contentAfter(file, n, mood, random);
    plan.push_back({file, path, contents[file]});
  }
  return plan;
}

}  // namespace trainfs::test
