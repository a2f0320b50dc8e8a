#include "fuse_client/kernel_mount.h"

#define FUSE_USE_VERSION 318
#include <fuse_lowlevel.h>
#include <spdlog/spdlog.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdarg>
#include <cstdlib>
#include <fstream>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "fuse_client/fuse_ops.h"
#include "small_file.h"

// Only our patch of libfuse defines it (tools/deps). Weak, so that the linker decides: a build
// directory may be older than the library.
extern "C" [[gnu::weak]] void trainfs_libfuse_uring_mended();

namespace trainfs::client {

namespace {

constexpr int kUringLooks = 50;
constexpr std::chrono::milliseconds kUringLookEvery{10};
constexpr uint32_t kThreadsMin = 4, kThreadsMax = 16;
// Requests of one processor over io_uring, each with 1 MiB of address space. Deep where processors
// are few, so that callers who wait for a server leave room for others there, too.
constexpr uint32_t kDepthMin = 256, kDepthMax = 1024, kDepthOfAll = 8192;
constexpr const char* kUringSwitch = "/sys/module/fuse/parameters/enable_uring";

// Of libfuse, which gives reasons nowhere else. Its threads complain, too.
std::mutex complaintMutex;
std::string complaint;

std::string lastComplaint() {
  std::lock_guard lock(complaintMutex);
  return complaint.empty() ? "no reason is known" : complaint;
}

void logFuse(fuse_log_level level, const char* format, va_list arguments) {
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  std::string line(text);
  while (line.ends_with('\n')) line.pop_back();
  if (level <= FUSE_LOG_ERR) {
    std::lock_guard lock(complaintMutex);
    complaint = line;
  }
  if (level <= FUSE_LOG_WARNING)
    spdlog::warn("{}", line);
  else
    spdlog::debug("{}", line);
}

// libfuse splits its options at commas.
std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == ',' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

KernelMount::KernelMount(Client& client, const MountOptions& options, std::function<void()> ended)
    : client_(client), options_(options) {
  fuse_set_log_func(logFuse);
  char resolved[PATH_MAX];
  if (realpath(options.mountPoint.c_str(), resolved) == nullptr)
    throw std::runtime_error("mount point " + options.mountPoint + ": " + strerror(errno));
  mountPoint_ = resolved;
  struct stat place;
  if (stat(resolved, &place) != 0 || !S_ISDIR(place.st_mode))
    throw std::runtime_error("mount point " + mountPoint_ + " is not a directory");
  client_.kernelFeatures().libfuseMended = trainfs_libfuse_uring_mended != nullptr;
  if (auto reason = prepareUring(); !reason.empty()) noUring(reason);
  session_ = makeSession();
  if (session_ == nullptr)
    throw std::runtime_error("libfuse refuses the options: " + lastComplaint());
  if (fuse_session_mount(session_, mountPoint_.c_str()) != 0) {
    fuse_session_destroy(session_);
    throw std::runtime_error("cannot mount on " + mountPoint_ + ": " + lastComplaint());
  }
  client_.invalidator().setSession(session_);
  uint32_t threads = options.threads != 0 ? options.threads
                                          : std::clamp(2 * std::thread::hardware_concurrency(),
                                                       kThreadsMin, kThreadsMax);
  loop_ = std::make_unique<ReceiveLoop>(
      session_, client_.buffers(), threads, [this] { client_.interrupts().interrupted(); },
      std::move(ended));
}

KernelMount::~KernelMount() {
  fuse_session_destroy(session_);
}

// Whether the kernel is to be asked for io_uring: an empty answer; otherwise why not.
std::string KernelMount::prepareUring() {
  if (options_.uring == UringMode::kOff) return "turned off (-o uring=off)";
  if (!client_.kernelFeatures().libfuseMended)
    return "this libfuse loses replies over io_uring; tools/deps builds one that does not";
  auto state = firstLineOf(kUringSwitch);
  if (state.empty())
    return std::string("the kernel has no ") + kUringSwitch + " (it came with Linux 6.14)";
  if (state[0] != 'Y') {
    std::ofstream(kUringSwitch) << "Y";
    if (firstLineOf(kUringSwitch)[0] != 'Y') return std::string(kUringSwitch) + " cannot be set";
  }
  uring_ = true;
  uint32_t fair = kDepthOfAll / std::max(1u, std::thread::hardware_concurrency());
  client_.kernelFeatures().uringQueueDepth = options_.uringQueueDepth != 0
                                                 ? options_.uringQueueDepth
                                                 : std::clamp(fair, kDepthMin, kDepthMax);
  return {};
}

void KernelMount::noUring(const std::string& reason) {
  if (options_.uring == UringMode::kOn)
    throw std::runtime_error("there is no FUSE over io_uring: " + reason);
  if (options_.uring == UringMode::kAuto) spdlog::warn("FUSE goes without io_uring: {}", reason);
  client_.kernelFeatures().whyNoUring = reason;
}

fuse_session* KernelMount::makeSession() {
  std::vector<std::string> list = {"fsname=" + escaped(options_.source), "subtype=trainfs",
                                   "default_permissions"};
  if (options_.allowOther) list.push_back("allow_other");
  // mount(8) takes suid and dev away before it calls a helper, and libfuse starts without them.
  if (geteuid() == 0) list.insert(list.end(), {"suid", "dev"});
  if (options_.readOnly) list.push_back("ro");
  for (auto& option : options_.kernelOptions) list.push_back(escaped(option));
  if (uring_) {
    list.push_back("io_uring");
    list.push_back("io_uring_q_depth=" + std::to_string(client_.kernelFeatures().uringQueueDepth));
  }
  std::string joined = "-o";
  for (auto& option : list) joined += (joined.size() > 2 ? "," : "") + option;
  fuse_args args = FUSE_ARGS_INIT(0, nullptr);
  fuse_opt_add_arg(&args, "trainfs-client");
  fuse_opt_add_arg(&args, joined.c_str());
  auto ops = fuseOps();
  auto* session = fuse_session_new(&args, &ops, sizeof ops, &client_);
  fuse_opt_free_args(&args);
  return session;
}

void KernelMount::settle() {
  struct stat root;
  if (stat(mountPoint_.c_str(), &root) != 0)
    throw std::runtime_error("the mount does not serve: " + std::string(strerror(errno)));
  if (uring_) settleUring();
  client_.invalidator().probeEpochs();
  readaheadFile_ = "/sys/class/bdi/" + std::to_string(major(root.st_dev)) + ":" +
                   std::to_string(minor(root.st_dev)) + "/read_ahead_kb";
  client_.kernelFeatures().whyNoReadahead = setReadahead(options_.readaheadKib);
}

// What was asked for the kernel may still refuse, and libfuse goes on without a word: see how
// requests come. The first ones may come the other way, while the rings are being set up.
void KernelMount::settleUring() {
  auto& features = client_.kernelFeatures();
  if (!features.offersUring) return noUring("the kernel does not offer it");
  for (int i = 0; i < kUringLooks && !features.cameByUring; ++i) {
    struct statvfs figures;  // asked of this program each time
    statvfs(mountPoint_.c_str(), &figures);
    if (!features.cameByUring) std::this_thread::sleep_for(kUringLookEvery);
  }
  if (!features.cameByUring) return noUring("it could not be set up: " + lastComplaint());
}

std::string KernelMount::setReadahead(uint32_t kib) {
  std::ofstream file(readaheadFile_);
  file << kib;
  file.close();
  if (!file) return readaheadFile_ + " cannot be written";
  client_.kernelFeatures().readaheadBytes = kib * 1024;
  return {};
}

void KernelMount::detach(std::chrono::milliseconds patience) {
  auto detached = std::make_shared<std::promise<void>>();
  auto done = detached->get_future();
  std::thread([detached, mountPoint = mountPoint_] {
    if (umount2(mountPoint.c_str(), 0) != 0 && errno != EINVAL) {
      spdlog::warn("{} is busy: detached, and gone once it is not used any more", mountPoint);
      umount2(mountPoint.c_str(), MNT_DETACH);
    }
    detached->set_value();
  }).detach();
  if (done.wait_for(patience) != std::future_status::ready)
    spdlog::error("what mappings of files of {} changed cannot be written now", mountPoint_);
}

void KernelMount::stop() {
  if (auto waiting = client_.inFlight().all().size(); waiting != 0)
    spdlog::error("{} requests of {} were not answered by servers, and fail", waiting, mountPoint_);
  client_.invalidator().setSession(nullptr);
  fuse_session_exit(session_);
  loop_.reset();
  fuse_session_unmount(session_);
}

std::string KernelMount::describe() const {
  auto& features = client_.kernelFeatures();
  auto join = [](const std::vector<std::string>& names) {
    std::string text;
    for (auto& name : names) text += (text.empty() ? "" : " ") + name;
    return text;
  };
  auto text = "FUSE protocol " + std::to_string(features.protocolMajor) + "." +
              std::to_string(features.protocolMinor) + ", libfuse " + fuse_pkgversion() + "\n";
  text += "in use: " + join(features.inUse) + "\n";
  if (!features.missing.empty())
    text += "not in use, for the kernel lacks it: " + join(features.missing) + "\n";
  text += "requests: up to " + std::to_string(features.maxWriteBytes / 1024) + " KiB\n";
  text += "read-ahead: " +
          (features.whyNoReadahead.empty() ? std::to_string(options_.readaheadKib) + " KiB"
                                           : "the kernel's default: " + features.whyNoReadahead) +
          "\n";
  text +=
      std::string("names cached: ") +
      (client_.invalidator().hasEpochs() ? "yes" : "no: the kernel has no epochs (Linux 6.16)") +
      "\n";
  text += "io_uring: " +
          (features.whyNoUring.empty()
               ? "yes, " + std::to_string(features.uringQueueDepth) + " requests per processor"
               : "no: " + features.whyNoUring) +
          "\n";
  text += "passthrough: no: not in this version\n";
  return text;
}

}  // namespace trainfs::client
