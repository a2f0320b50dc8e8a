// trainfs-oss: serves object storage targets. Wiring only.
#include <kj/async-io.h>
#include <kj/exception.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "lmdb_file.h"
#include "oss/control.h"
#include "oss/leftovers.h"
#include "oss/metrics.h"
#include "trainfs/cluster_map.h"
#include "trainfs/config.h"
#include "trainfs/logging.h"
#include "trainfs/server_process.h"
#include "trainfs/target.h"

namespace trainfs::oss {
namespace {

constexpr size_t kOstsMax = 64;

struct Config {
  std::string dataListen = "*";
  std::string advertise, metricsListen;
  uint32_t workers = std::clamp(std::thread::hardware_concurrency() / 2, 1u, 4u);
  uint32_t connectionsMax = 1024;
  bool acceptOlderCopy = false;
  std::vector<std::string> directories;
};

void declare(ProgramOptions& options, Config& config) {
  options.addForDaemon();
  options.add("data-listen", config.dataListen,
              "address of the data ports, HOST[:PORT]: one port per worker from PORT on; 0: any",
              checkListenAddress);
  options.add("advertise", config.advertise,
              "host by which clients reach the data ports; default: the address that this server "
              "has towards the MDS");
  options.add("workers", config.workers, "data worker threads", 1, kOstPortsMax);
  options.add("max-connections", config.connectionsMax, "client connections at a time", 16, 65536);
  options.add("accept-older-copy", config.acceptOlderCopy,
              "serve copies of targets although newer ones were served, which are lost");
  options.add("metrics-listen", config.metricsListen,
              "HOST:PORT of an HTTP endpoint for Prometheus; default: none", checkMetricsAddress);
  options.addPositional("DIR", config.directories, "targets, made by mkfs.trainfs --ost", 1,
                        "targets");
}

// Made anew, an index would take whatever the objects hold now for right.
void requireIndexOfObjects(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code none;
  auto file = directory + "/index/data.mdb";
  bool index = fs::exists(file, none) && fs::file_size(file, none) > 0;
  bool objects =
      fs::exists(directory + "/objects", none) && !fs::is_empty(directory + "/objects", none);
  if (!index && objects)
    throw std::runtime_error(file + " is missing or empty, but there are objects that it is about");
}

std::unique_ptr<Ost> openOst(const std::string& directory, TargetLock& lock) {
  auto require = [&](const std::string& wrong) {
    if (!wrong.empty()) throw std::runtime_error(wrong);
  };
  auto ost = std::make_unique<Ost>();
  require(loadTarget(directory, ost->target));
  require(lockTarget(directory, lock));
  if (ost->target.kind != Target::Kind::kOst)
    throw std::runtime_error(directory + " is not an OST but " + targetName(ost->target));
  if (ost->target.mgsNodes.empty())
    throw std::runtime_error(directory + "/" + kTargetFile + " names no MDS (mgsnode)");
  ost->name = targetName(ost->target);
  ost->directory = directory;
  requireIndexOfObjects(directory);
  std::string note = std::string(VerifierNote::kDirectory) + "/" + ost->target.uuid;
  ost->index = std::make_unique<ObjectIndex>(directory + "/index", note);
  ost->unclean = ost->index->foundUnclean();
  return ost;
}

std::vector<std::unique_ptr<Ost>> openOsts(const Config& config, std::vector<TargetLock>& locks) {
  if (config.directories.size() > kOstsMax)
    throw std::runtime_error("more than " + std::to_string(kOstsMax) + " targets");
  locks.resize(config.directories.size());
  std::vector<std::unique_ptr<Ost>> osts;
  for (size_t i = 0; i < config.directories.size(); ++i) {
    osts.push_back(openOst(config.directories[i], locks[i]));
    for (size_t j = 0; j < i; ++j) {
      if (osts[j]->target.fsname != osts[i]->target.fsname)
        throw std::runtime_error(osts[j]->name + " and " + osts[i]->name +
                                 " belong to different file systems");
      if (osts[j]->target.index == osts[i]->target.index)
        throw std::runtime_error(osts[j]->directory + " and " + osts[i]->directory +
                                 " have the same index");
    }
  }
  return osts;
}

struct DataPorts {
  std::string host;
  std::vector<Listener> listeners;
};

DataPorts openPorts(const Config& config) {
  HostPort place;
  parseHostPort(config.dataListen, kDefaultOssDataPort, place);
  if (place.port + config.workers - 1 > 65535) throw std::runtime_error("ports beyond 65535");
  DataPorts ports{place.host, {}};
  for (uint32_t i = 0; i < config.workers; ++i)
    ports.listeners.push_back(listenOn(place.host, place.port == 0 ? 0 : place.port + i));
  return ports;
}

std::string advertisedHost(const Config& config, const DataPorts& ports) {
  if (!config.advertise.empty()) return config.advertise;
  bool any =
      ports.host.empty() || ports.host == "*" || ports.host == "0.0.0.0" || ports.host == "::";
  return any ? "" : ports.host;
}

// Each OST says by itself when it serves.
std::string describe(const std::vector<std::unique_ptr<Ost>>& osts, const DataPorts& ports) {
  std::string text = "data ports";
  for (auto& listener : ports.listeners) text += " " + std::to_string(listener.port);
  text += " of " + ports.host + " are open for";
  for (auto& ost : osts) text += " " + ost->name;
  return text;
}

int serve(ServerProcess& process, const Config& config) {
  std::vector<TargetLock> locks;
  auto osts = openOsts(config, locks);
  auto ports = openPorts(config);
  auto io = kj::setupAsyncIo();

  SessionTable sessions;
  Control::Config controlConfig{.advertisedHost = advertisedHost(config, ports),
                                .acceptOlderCopy = config.acceptOlderCopy};
  for (auto& listener : ports.listeners) controlConfig.ports.push_back(listener.port);
  Control control(io.provider->getNetwork(), io.provider->getTimer(), controlConfig, osts,
                  sessions);

  std::vector<std::unique_ptr<WorkerThread>> workers;
  for (uint32_t i = 0; i < config.workers; ++i) {
    WorkerConfig worker{.number = i, .count = config.workers};
    worker.connectionsMax = std::max(1u, config.connectionsMax / config.workers);
    // A quarter of the descriptors for object files, over all workers and OSTs.
    worker.limits.descriptors = std::clamp<size_t>(
        process.descriptorsMax() / 4 / config.workers / osts.size(), 16, worker.limits.descriptors);
    workers.push_back(
        std::make_unique<WorkerThread>(worker, ports.listeners[i].socket, osts, sessions, control));
  }
  auto metrics = serveMetrics(config.metricsListen,
                              [&](MetricsPage& page) { fillMetrics(page, osts, workers); });
  std::vector<std::unique_ptr<Leftovers>> leftovers;
  for (auto& ost : osts)
    if (ost->unclean) leftovers.push_back(std::make_unique<Leftovers>(*ost, workers));
  auto stop = process.asksToStop(io.unixEventPort);
  process.serving(describe(osts, ports));
  bool asked = control.run(workers, kj::mv(stop)).wait(io.waitScope);
  metrics.reset();
  control.endChecks();
  leftovers.clear();
  for (auto& worker : workers) worker->beginStop();
  for (auto& worker : workers) worker->stop();
  for (auto& ost : osts)
    if (!ost->unclean) ost->index->noteOrderlyStop();
  spdlog::info("stopped");
  return asked ? 0 : 1;
}

}  // namespace
}  // namespace trainfs::oss

int main(int argc, char** argv) {
  trainfs::oss::Config config;
  trainfs::ProgramOptions options("trainfs-oss",
                                  "Serves object storage targets of a trainfs file system.");
  trainfs::oss::declare(options, config);
  options.addExamples(
      "  trainfs-oss /srv/trainfs/ost0\n"
      "  trainfs-oss --data-listen=10.1.0.7:7180 --workers=8 /srv/trainfs/ost0 /srv/trainfs/ost1\n"
      "  trainfs-oss --check-config --config=/etc/trainfs/oss0.toml\n");
  options.parseOrExit(argc, argv);
  trainfs::ServerProcess process(options);
  trainfs::nameLostPages();
  try {
    return trainfs::oss::serve(process, config);
  } catch (const kj::Exception& exception) {
    spdlog::critical("{}", exception.getDescription().cStr());
  } catch (const std::exception& exception) {
    spdlog::critical("{}", exception.what());
  }
  return 1;
}
