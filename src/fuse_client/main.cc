// trainfs-client: mounts a trainfs file system. Wiring only.
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <poll.h>

#include <cstdio>
#include <cstring>

#include "fuse_client/client.h"
#include "fuse_client/daemon.h"
#include "fuse_client/kernel_mount.h"
#include "fuse_client/metrics.h"
#include "fuse_client/mount_control.h"
#include "fuse_client/mount_options.h"
#include "fuse_client/remount.h"
#include "trainfs/logging.h"

using namespace trainfs;
using namespace trainfs::client;

namespace {

// Unmounting waits at most for all of these, whatever servers are away.
constexpr std::chrono::seconds kDetachPatience{5};  // for the kernel, to write what it has
constexpr std::chrono::seconds kUsersPatience{5};   // for users of a mount that is to end
constexpr std::chrono::seconds kFinishPatience{
    30};                                            // for the MDS, once nothing is mounted any more
constexpr std::chrono::seconds kEndPatience{1};     // for the MDS, when there is nothing to report
constexpr std::chrono::seconds kMountPatience{10};  // for the kernel, once there is a session

std::string hostName() {
  char name[256] = "?";
  gethostname(name, sizeof name - 1);
  return name;
}

// Signals come by a descriptor, to the main thread; no other thread is disturbed by them.
int blockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signalfd(-1, &signals, SFD_CLOEXEC);
}

// True: `fd` became readable within `patience` (negative: for ever).
bool waitFor(std::initializer_list<int> fds, int milliseconds) {
  std::vector<pollfd> waiting;
  for (int fd : fds) waiting.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  int ready;
  do {
    ready = poll(waiting.data(), waiting.size(), milliseconds);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

// Until the mount has ended or shall end. SIGHUP begins the log file anew.
void waitForEnd(int signals, int ended, const MountOptions& options) {
  for (;;) {
    waitFor({signals, ended}, -1);
    if (waitFor({ended}, 0)) return;
    signalfd_siginfo got{};
    if (read(signals, &got, sizeof got) != sizeof got || got.ssi_signo != SIGHUP) return;
    if (options.logFile.empty()) continue;
    if (auto wrong = logTo(options.logFile); !wrong.empty()) spdlog::error("{}", wrong);
  }
}

int serve(const MountOptions& options, Daemon& daemon) {
  int signals = blockSignals();
  int ended = eventfd(0, EFD_CLOEXEC);
  auto complaints = dup(STDERR_FILENO);  // of mounting: to the caller, whatever the log is
  if (!options.logFile.empty())
    if (auto wrong = logTo(options.logFile); !wrong.empty()) daemon.failed(wrong);
  auto fail = [&](const std::string& reason) {
    if (!options.logFile.empty()) spdlog::error("{}", reason);
    dup2(complaints, STDERR_FILENO);
    daemon.failed(reason);
  };

  Client client({.servers = options.servers,
                 .fsname = options.fsname,
                 .clientName = hostName() + ":" + options.mountPoint,
                 .readOnly = options.readOnly,
                 .soft = options.soft,
                 .softTimeout = options.softTimeout},
                {.workers = options.dataWorkers,
                 .lanesPerWorker = options.lanes,
                 .soft = options.soft,
                 .softTimeout = options.softTimeout});
  if (auto reason = client.mds().waitForSession(options.connectTimeout))
    fail("cannot reach an MDS of " + options.fsname + " within " +
         std::to_string(options.connectTimeout.count()) + " seconds: " + *reason);

  if (auto reason = client.chooseRoot(options.directory, options.connectTimeout); !reason.empty()) {
    client.mds().end(kEndPatience);  // or the others could not cache until the MDS misses this one
    fail("cannot mount a directory of " + options.fsname + ": " + reason);
  }
  client.setLocking(options.locking);
  MountControl control(options);
  client.setControl(&control);

  std::unique_ptr<MetricsEndpoint> metrics;
  std::unique_ptr<KernelMount> mount;
  try {
    metrics = serveMetrics(options.metricsListen, [&](MetricsPage& page) {
      fillMetrics(page, options.mountPoint, client.statistics(), client.inodes().figures(),
                  client.coherence().mayCache());
    });
    mount = std::make_unique<KernelMount>(client, options, [ended] {
      uint64_t one = 1;
      (void)!write(ended, &one, sizeof one);
    });
    mount->settle();
    control.onReadahead([&mount](uint32_t kib) { return mount->setReadahead(kib); });
  } catch (const std::exception& error) {
    if (mount) mount->detach(kDetachPatience);
    client.mds().end(kEndPatience);
    fail(error.what());
  }
  if (options.verbose) std::fputs(mount->describe().c_str(), stdout), std::fflush(stdout);
  close(complaints);
  daemon.ready(options.logFile);
  spdlog::info("serving {} at {}", options.source, options.mountPoint);

  waitForEnd(signals, ended, options);
  if (!waitFor({ended}, 0)) {
    mount->detach(kDetachPatience);
    if (!waitFor({ended}, static_cast<int>(std::chrono::milliseconds(kUsersPatience).count())))
      spdlog::warn("{} is still in use; its users lose it now", options.mountPoint);
  }
  mount->stop();
  metrics.reset();
  bool finished = client.finish(kFinishPatience);
  spdlog::info("{} unmounted", options.mountPoint);
  std::fflush(nullptr);
  // Requests of callers that are gone may still wait for servers. Nothing of them is owed to
  // anybody.
  _exit(finished ? 0 : 1);
}

int refuse(const std::string& reason) {
  std::fprintf(stderr, "trainfs-client: %s\n", reason.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  MountOptions options;
  if (auto usage = parseMountOptions(argc, argv, options)) {
    std::fputs(usage->text.c_str(), usage->status == 0 ? stdout : stderr);
    return usage->status;
  }
  // The current directory will not be the caller's in the background.
  if (char* absolute = realpath(options.mountPoint.c_str(), nullptr)) options.mountPoint = absolute;
  if (!options.logFile.empty() && options.logFile[0] != '/') {
    char here[4096];
    if (getcwd(here, sizeof here) != nullptr)
      options.logFile = std::string(here) + "/" + options.logFile;
  }
  if (options.checkOnly) return 0;
  if (geteuid() != 0)
    return refuse("only root can mount trainfs: servers take the word of who mounts");
  if (options.remount) {
    auto wrong = remount(options.source, options.mountPoint, options.lists, options.sloppy);
    return wrong.empty() ? 0 : refuse(wrong);
  }
  startLogging("trainfs-client", options.logLevel);
  Daemon daemon(options.foreground, options.connectTimeout + kMountPatience);
  return serve(options, daemon);
}
