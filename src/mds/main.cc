// trainfs-mds: serves a metadata target. Wiring only.
#include <kj/async-io.h>
#include <kj/exception.h>
#include <sys/stat.h>

#include "lmdb_file.h"
#include "mds/journal.h"
#include "mds/lmdb_log.h"
#include "mds/metrics.h"
#include "mds/server.h"
#include "trainfs/config.h"
#include "trainfs/logging.h"
#include "trainfs/server_process.h"
#include "trainfs/target.h"

namespace trainfs::mds {
namespace {

struct Config {
  std::string listen = fmt::format("*:{}", kDefaultMdsPort);
  uint32_t clientTermSeconds = 10, ostTermSeconds = 10, silenceSeconds = 60;
  uint32_t connectionsMax = 1024, sessionsMax = 4096;
  uint32_t mapGigabytes = 1024;
  uint32_t reserveMegabytes = 64;
  uint32_t changelogThousands = 10000, changelogIdleDays = 30;
  std::string metricsListen, directory;
};

void declare(ProgramOptions& options, Config& config) {
  options.addForDaemon();
  options.add("listen", config.listen, "address to listen on, HOST[:PORT]", checkListenAddress);
  options.add("client-term", config.clientTermSeconds,
              "seconds that a client may rely on its caches after its last renewal", 1, 600);
  options.add("ost-term", config.ostTermSeconds,
              "seconds that an OST may serve after its last renewal", 5, 600);
  options.add("evict-after", config.silenceSeconds,
              "seconds of silence after which a client is evicted", 1, 86400);
  options.add("max-connections", config.connectionsMax, "connections at a time", 1, 65536);
  options.add("max-clients", config.sessionsMax, "sessions of clients at a time", 1, 65536);
  options.add("map-size", config.mapGigabytes,
              "GiB of address space for the store, the most that it can grow to", 1, 16384);
  options.add("reserve", config.reserveMegabytes,
              "MiB of disk kept for the store: with less, only what frees something is done", 64,
              65536);
  options.add("changelog-max", config.changelogThousands,
              "thousand records that a user of the changelog may fall behind", 1, 1000000);
  options.add("changelog-idle", config.changelogIdleDays,
              "days after which a user of the changelog that clears nothing is deregistered", 1,
              3650);
  options.add("metrics-listen", config.metricsListen,
              "HOST:PORT of an HTTP endpoint for Prometheus; default: none", checkMetricsAddress);
  options.addPositional("DIR", config.directory, "the target, made by mkfs.trainfs --mdt",
                        "target");
}

std::string storeOf(const std::string& directory) {
  return directory + "/mdt";
}

// What the target's file system has room for. An inode takes about this much of the store.
constexpr uint64_t kBytesPerInode = 1024;

Space spaceOfMdt(const std::string& directory) {
  auto space = spaceOf(directory);
  struct stat store{};
  if (!space || stat((storeOf(directory) + "/data.mdb").c_str(), &store) != 0) return {};
  space->freeFiles = space->availableBytes / kBytesPerInode;
  space->files = space->freeFiles + store.st_blocks * 512 / kBytesPerInode;
  return *space;
}

int fail(const std::string& what) {
  spdlog::critical("{}", what);
  return 1;
}

void serve(ServerProcess& process, const Config& config, const HostPort& at, const Target& target,
           Journal& journal) {
  auto io = kj::setupAsyncIo();
  auto address =
      io.provider->getNetwork().parseAddress(at.host.c_str(), at.port).wait(io.waitScope);
  auto listener = address->listen();

  ServerOptions options;
  options.clientTerm = config.clientTermSeconds * kj::SECONDS;
  options.ostTerm = config.ostTermSeconds * kj::SECONDS;
  options.silenceMax = config.silenceSeconds * kj::SECONDS;
  options.connectionsMax = config.connectionsMax;
  options.sessionsMax = config.sessionsMax;
  options.changelogRecordsMax = config.changelogThousands * uint64_t{1000};
  options.changelogIdleMax = config.changelogIdleDays * kj::DAYS;
  options.targetUuid = target.uuid;
  options.address = hostPortText({at.host, static_cast<uint16_t>(listener->getPort())});
  options.space = [directory = config.directory] { return spaceOfMdt(directory); };

  LmdbLog log(journal);
  Server server(journal.store(), log, io.provider->getTimer(), kj::mv(listener), options);
  auto metrics = serveMetrics(config.metricsListen, [&](MetricsPage& page) {
    fillMetrics(page, server.core().statistics, spaceOfMdt(config.directory));
  });
  auto stop = process.asksToStop(io.unixEventPort);
  process.serving(fmt::format("serving {} on {}", targetName(target), options.address));
  stop.wait(io.waitScope);

  metrics.reset();
  server.stop();  // the log makes durable and applies what it has, and goes
}

std::unique_ptr<Journal> openJournal(const Config& config, const Target& target) {
  JournalOptions options;
  options.store.mapBytes = config.mapGigabytes * kGiB;
  options.store.reserveBytes = config.reserveMegabytes * kMiB;
  auto journal = Journal::open(storeOf(config.directory), options);
  if (journal->recovered() != 0)
    spdlog::info("applied {} changes from the log again", journal->recovered());
  auto view = journal->store().snapshot();
  KJ_REQUIRE(fsname(*view) == target.fsname && mdtIndex(*view) == target.index,
             "the metadata is that of another target", target.fsname, target.index);
  return journal;
}

int run(int argc, char** argv) {
  Config config;
  ProgramOptions programOptions("trainfs-mds",
                                "Serves a metadata target of a trainfs file system.");
  declare(programOptions, config);
  programOptions.addExamples(
      "  trainfs-mds /srv/trainfs/mdt0\n"
      "  trainfs-mds --listen=10.0.0.1 --metrics-listen='*:9171' /srv/trainfs/mdt0\n"
      "  trainfs-mds --check-config --config=/etc/trainfs/mdt0.toml\n");
  programOptions.parseOrExit(argc, argv);
  HostPort listen;
  parseHostPort(config.listen, kDefaultMdsPort, listen);
  ServerProcess process(programOptions);
  nameLostPages();

  const auto& directory = config.directory;
  Target target;
  if (auto wrong = loadTarget(directory, target); !wrong.empty()) return fail(wrong);
  if (target.kind != Target::Kind::kMdt)
    return fail(fmt::format("{}: {} is no metadata target", directory, targetName(target)));
  TargetLock lock;
  if (auto wrong = lockTarget(directory, lock); !wrong.empty()) return fail(wrong);
  std::unique_ptr<Journal> journal;
  try {
    journal = openJournal(config, target);
  } catch (const kj::Exception& e) {
    return fail(fmt::format("{}: {}", directory, e.getDescription().cStr()));
  }
  try {
    serve(process, config, listen, target, *journal);
  } catch (const kj::Exception& e) {
    return fail(fmt::format("cannot serve on {}: {}", config.listen, e.getDescription().cStr()));
  } catch (const std::runtime_error& e) {
    return fail(e.what());
  }
  return 0;
}

}  // namespace
}  // namespace trainfs::mds

int main(int argc, char** argv) {
  return trainfs::mds::run(argc, argv);
}
