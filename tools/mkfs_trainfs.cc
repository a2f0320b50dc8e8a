// mkfs.trainfs: formats a directory as a target, as mkfs.lustre formats a device.
// man/mkfs.trainfs.8.
//
// Every state between two system calls is told apart from foreign data: first a draft of the target
// file says that the directory is ours, then come the data's places, last the draft becomes the
// target file. --reformat goes the same way back.
#include <fcntl.h>
#include <kj/exception.h>
#include <linux/falloc.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <stdexcept>

#include "mds/lmdb_store.h"
#include "mds/state_machine.h"
#include "trainfs/config.h"
#include "trainfs/target.h"

namespace trainfs {

namespace {

namespace fs = std::filesystem;

constexpr int kExitFailure = 1;

struct Request {
  Target target;
  std::string directory;
  bool reformat = false;
  bool dryRun = false;
};

// Ends in one line on stderr, with the directory in front.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void failErrno(const std::string& path, int error = errno) {
  throw Failure(path + ": " + std::strerror(error));
}

// ---- The command line ----

[[noreturn]] void usage(const std::string& what) {
  std::fprintf(stderr, "mkfs.trainfs: %s (see mkfs.trainfs --help)\n", what.c_str());
  std::exit(kExitUsage);
}

std::string randomUuid() {
  uint8_t bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) {
    std::perror("mkfs.trainfs: getrandom");
    std::exit(kExitFailure);
  }
  bytes[6] = (bytes[6] & 0x0f) | 0x40;  // RFC 4122: version 4, random
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  std::string text;
  for (size_t i = 0; i < sizeof bytes; ++i) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%02x", bytes[i]);
    text += hex;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

std::vector<std::string> splitAtCommas(const std::vector<std::string>& lists) {
  std::vector<std::string> nodes;
  for (auto& list : lists)
    for (size_t begin = 0, end; begin <= list.size(); begin = end + 1) {
      end = std::min(list.find(',', begin), list.size());
      nodes.push_back(list.substr(begin, end - begin));
    }
  return nodes;
}

Request parse(int argc, char** argv) {
  bool mdt = false, ost = false;
  std::optional<uint32_t> index;
  std::vector<std::string> mgsNodes, directories;
  Request request;
  ProgramOptions options("mkfs.trainfs",
                         "Formats a directory as a target of a trainfs file system.");
  options.add("fsname", request.target.fsname, "name of the file system, 1 to 8 characters");
  options.add("mdt", mdt, "a metadata target");
  options.add("ost", ost, "an object storage target");
  options.add("mgs", request.target.mgs, "with --mdt: it also holds the cluster map");
  options.add("index", index, "number of the target; an MDT's default is 0", 0, kMdtIndexMax);
  options.add("mgsnode", mgsNodes, "where the MGS is, HOST[:PORT][,...]; may be repeated");
  options.add("reformat", request.reformat, "format again what is a trainfs target already");
  options.add("dry-run,-n,--dryrun", request.dryRun, "say what would be done, and do nothing");
  options.addPositional("directory", directories, "where the target is to be", 1);
  options.addExamples(
      "  mkfs.trainfs --fsname=trainfs --mdt --mgs /srv/trainfs/mdt0\n"
      "  mkfs.trainfs --fsname=trainfs --ost --index=0 --mgsnode=mds1 /srv/trainfs/ost0\n"
      "  mkfs.trainfs -n --fsname=trainfs --ost --index=1 --mgsnode=mds1 /srv/trainfs/ost1\n");
  options.parseOrExit(argc, argv);

  if (directories.size() != 1) usage("one directory at a time");
  if (mdt == ost) usage("say either --mdt or --ost");
  if (request.target.fsname.empty()) usage("--fsname is missing");
  if (ost && !index) usage("--index is missing: each OST has its own");
  request.directory = directories[0];
  request.target.kind = mdt ? Target::Kind::kMdt : Target::Kind::kOst;
  request.target.index = index.value_or(0);
  request.target.mgsNodes = splitAtCommas(mgsNodes);
  request.target.uuid = randomUuid();
  if (auto wrong = checkTarget(request.target); !wrong.empty()) usage(wrong);
  return request;
}

// ---- The directory, as it is ----

struct FileSystem {
  unsigned long magic;
  const char* name;
};

// statfs(2)'s numbers; those that <linux/magic.h> lacks are spelt out.
constexpr FileSystem kTried[] = {{EXT4_SUPER_MAGIC, "ext4"}, {XFS_SUPER_MAGIC, "xfs"}};
constexpr FileSystem kRemote[] = {
    {NFS_SUPER_MAGIC, "nfs"}, {SMB_SUPER_MAGIC, "smb"},   {0xff534d42, "cifs"},
    {0xfe534d42, "smb2"},     {FUSE_SUPER_MAGIC, "fuse"}, {V9FS_MAGIC, "9p"},
    {0x00c36400, "ceph"},     {AFS_SUPER_MAGIC, "afs"},   {CODA_SUPER_MAGIC, "coda"}};
constexpr FileSystem kUntried[] = {
    {TMPFS_MAGIC, "tmpfs"}, {BTRFS_SUPER_MAGIC, "btrfs"}, {OVERLAYFS_SUPER_MAGIC, "overlay"}};

template <size_t N>
const char* nameIn(const FileSystem (&list)[N], unsigned long magic) {
  for (auto& one : list)
    if (one.magic == magic) return one.name;
  return nullptr;
}

std::string fileSystemOf(const std::string& directory) {
  struct statfs status;
  if (statfs(directory.c_str(), &status) != 0) failErrno(directory);
  auto magic = static_cast<uint32_t>(status.f_type);
  if (auto* name = nameIn(kRemote, magic))
    throw Failure("is on " + std::string(name) +
                  "; a target must be on a local file system, ext4 or xfs");
  if (auto* name = nameIn(kTried, magic)) return name;
  auto* untried = nameIn(kUntried, magic);
  char type[32];
  std::snprintf(type, sizeof type, "type 0x%x", magic);
  std::string name = untried != nullptr ? untried : type;
  std::fprintf(stderr, "mkfs.trainfs: %s: warning: on %s; trainfs is tried on ext4 and xfs only\n",
               directory.c_str(), name.c_str());
  return name;
}

// The places of a target's data, in its directory.
std::vector<std::string> placesOf(Target::Kind kind) {
  if (kind == Target::Kind::kMdt) return {"mdt"};
  return {"objects", "index"};
}

struct Found {
  bool target = false;              // a target file, readable or not
  bool unfinished = false;          // only the draft of one
  std::string name;                 // of the target
  std::vector<std::string> places;  // data that is there, and trainfs' if one of the above
  std::string foreign;              // something else, by name
  bool ours() const { return target || unfinished; }
};

Found look(const std::string& directory) {
  Found found;
  auto ofMdt = placesOf(Target::Kind::kMdt), ofOst = placesOf(Target::Kind::kOst);
  auto among = [](auto& names, auto& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    auto name = entry->path().filename().string();
    if (name == kTargetFile)
      found.target = true;
    else if (name == kTargetDraftFile)
      found.unfinished = true;
    else if (among(ofMdt, name) || among(ofOst, name))
      found.places.push_back(name);
    else if (name != "lost+found")
      found.foreign = name;
  }
  if (error) throw Failure(error.message());
  found.unfinished = found.unfinished && !found.target;
  if (Target target; found.target)
    found.name = loadTarget(directory, target).empty()
                     ? "target " + targetName(target)
                     : "a target with a damaged " + std::string(kTargetFile);
  return found;
}

void requireUsable(const Request& request, const Found& found) {
  if (!request.reformat) {
    if (found.target)
      throw Failure("is " + found.name + " already; --reformat destroys it and starts anew");
    if (found.unfinished)
      throw Failure("holds a target whose formatting was interrupted; use --reformat");
    auto& what = found.places.empty() ? found.foreign : found.places[0];
    if (!what.empty()) throw Failure("is not empty: there is '" + what + "'");
  }
  // Without a target file, a directory called `objects` may be anybody's.
  if (!found.ours() && !found.places.empty())
    throw Failure("'" + found.places[0] + "' is in the way, and is not of a trainfs target");
}

// ---- Changing it ----

void syncDirectory(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) failErrno(path);
  int result = fsync(fd), error = errno;
  close(fd);
  if (result != 0) failErrno(path, error);
}

// From here on the directory is ours. The draft also serves to try what an OST asks of the file
// system.
void writeDraft(const Request& request) {
  auto path = request.directory + "/" + kTargetDraftFile;
  auto old = request.directory + "/" + kTargetFile;
  if (rename(old.c_str(), path.c_str()) != 0 && errno != ENOENT) failErrno(old);
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) failErrno(path);
  bool punches = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0;
  int error = errno;
  close(fd);
  syncDirectory(request.directory);
  if (request.target.kind == Target::Kind::kOst && !punches)
    throw Failure(std::string("the file system cannot punch holes (fallocate): ") +
                  std::strerror(error));
}

void removePlaces(const Request& request, const Found& found) {
  for (auto& place : found.places) {
    std::error_code error;
    fs::remove_all(request.directory + "/" + place, error);
    if (error) throw Failure(place + ": " + error.message());
  }
  if (!found.places.empty()) syncDirectory(request.directory);
}

// Closed to others: what lies inside bypasses the permissions of the file system that it holds.
void makePlaces(const Request& request) {
  for (auto& place : placesOf(request.target.kind)) {
    auto path = request.directory + "/" + place;
    if (mkdir(path.c_str(), 0700) != 0) failErrno(path);
    syncDirectory(path);
  }
  syncDirectory(request.directory);
}

void makeMetadata(const Request& request) {
  auto path = request.directory + "/" + placesOf(Target::Kind::kMdt)[0];
  timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) failErrno("clock_gettime");
  auto store = mds::LmdbStore::open(path, {.create = true});
  auto txn = store->begin();
  mds::format(*txn, request.target.fsname, static_cast<uint16_t>(request.target.index),
              {.seconds = now.tv_sec, .nanoseconds = static_cast<uint32_t>(now.tv_nsec)});
  txn->commit();
  txn.reset();
  store.reset();
  syncDirectory(path);
}

// ---- Telling about it ----

void printTarget(const Request& request, const std::string& fileSystem) {
  auto& target = request.target;
  std::string nodes;
  for (auto& node : target.mgsNodes) nodes += (nodes.empty() ? "mgsnode=" : ",") + node;
  std::printf("\n   Permanent disk data:\n");
  std::printf("Target:      %s\n", targetName(target).c_str());
  std::printf("Index:       %u\n", target.index);
  std::printf("trainfs FS:  %s\n", target.fsname.c_str());
  std::printf("Mount type:  %s\n", fileSystem.c_str());
  std::printf("Flags:       %s%s\n", target.kind == Target::Kind::kMdt ? "MDT" : "OST",
              target.mgs ? " MGS" : "");
  std::printf("UUID:        %s\n", target.uuid.c_str());
  std::printf("Parameters:  %s\n\n", nodes.c_str());
}

void format(const Request& request) {
  TargetLock lock;
  struct stat status;
  if (stat(request.directory.c_str(), &status) != 0) throw Failure(std::strerror(errno));
  if (!S_ISDIR(status.st_mode)) throw Failure(std::strerror(ENOTDIR));
  auto fileSystem = fileSystemOf(request.directory);
  if (auto wrong = lockTarget(request.directory, lock); !wrong.empty()) throw Failure(wrong);
  auto found = look(request.directory);
  requireUsable(request, found);
  printTarget(request, fileSystem);
  std::printf("checking for existing trainfs data: %s\n", found.ours() ? "found" : "not found");
  if (request.dryRun) {
    std::printf("Dry-run, exiting before disk write.\n");
    return;
  }
  std::fflush(stdout);
  writeDraft(request);
  if (found.ours()) {
    std::printf("removing %s\n",
                found.target ? found.name.c_str() : "what an interrupted format left");
    std::fflush(stdout);
    removePlaces(request, found);
  }
  std::printf("formatting %s\n", request.directory.c_str());
  makePlaces(request);
  if (request.target.kind == Target::Kind::kMdt) makeMetadata(request);
  if (auto wrong = saveTarget(request.directory, request.target); !wrong.empty())
    throw Failure(wrong);
  std::printf("wrote %s/%s\n", request.directory.c_str(), kTargetFile);
}

int run(const Request& request) {
  auto fail = [&](const std::string& what) {
    // Words that come from below name the path themselves.
    bool named =
        what.starts_with(request.directory + ":") || what.starts_with(request.directory + "/");
    std::fflush(stdout);
    std::fprintf(stderr, "mkfs.trainfs: %s%s%s\n", named ? "" : request.directory.c_str(),
                 named ? "" : ": ", what.c_str());
    return kExitFailure;
  };
  try {
    format(request);
  } catch (const Failure& failure) {
    return fail(failure.what());
  } catch (const kj::Exception& exception) {
    return fail(exception.getDescription().cStr());
  }
  if (std::fflush(stdout) != 0)
    return fail(std::string("standard output: ") + std::strerror(errno));
  return 0;
}

}  // namespace

}  // namespace trainfs

int main(int argc, char** argv) {
  return trainfs::run(trainfs::parse(argc, argv));
}
