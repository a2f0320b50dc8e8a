#include "cluster.h"

#include <algorithm>

#include "mds_connection.h"

namespace trainfs::tfs {
namespace {

std::vector<TargetStatus> decode(capnp::List<rpc::TargetStatus>::Reader targets) {
  std::vector<TargetStatus> result;
  for (auto target : targets)
    result.push_back({.index = target.getIndex(),
                      .uuid = target.getUuid().cStr(),
                      .address = target.getAddress().cStr(),
                      .active = target.getActive(),
                      .totalBytes = target.getTotalBytes(),
                      .freeBytes = target.getFreeBytes(),
                      .availableBytes = target.getAvailableBytes(),
                      .files = target.getFiles(),
                      .freeFiles = target.getFreeFiles()});
  std::sort(result.begin(), result.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  return result;
}

ClusterStatus ask(MdsConnection& connection, const MdsAddress& server) {
  auto answer = connection.call(connection.mds().statusRequest());
  auto status = answer.getStatus();
  ClusterStatus result{.server = nameOf(server),
                       .fsname = status.getFsname().cStr(),
                       .mdts = decode(status.getMdts()),
                       .osts = decode(status.getOsts())};
  // What it listens on may be an address that nobody else can use; this one has been used.
  for (TargetStatus& mdt : result.mdts)
    if (mdt.index == connection.mdtIndex()) mdt.address = result.server;
  for (auto ost : status.getMap().getOsts())
    for (uint16_t port : ost.getPorts())
      result.dataPorts.push_back({ost.getIndex(), ost.getHost().cStr(), port});
  return result;
}

}  // namespace

ClusterStatus askCluster(const Mount& mount) {
  ClusterStatus status;
  status.error = askServers(mount, [&](MdsConnection& connection, const MdsAddress& server) {
    status = ask(connection, server);
  });
  return status;
}

std::vector<std::string> probe(const std::vector<DataPort>& ports) {
  auto io = kj::setupAsyncIo();
  auto& network = io.provider->getNetwork();
  auto& timer = io.provider->getTimer();
  auto attempt = [&](const DataPort& port) {
    auto connected = network.parseAddress(port.host.c_str(), port.port)
                         .then([](kj::Own<kj::NetworkAddress> address) {
                           auto promise = address->connect();
                           return promise.attach(kj::mv(address));
                         });
    return timer.timeoutAfter(kPatience.count() * kj::SECONDS, kj::mv(connected))
        .then([](kj::Own<kj::AsyncIoStream>) { return std::string(); },
              [](kj::Exception&& exception) { return words(exception); });
  };
  std::vector<std::string> answers;
  for (size_t begin = 0; begin < ports.size(); begin += kProbesAtOnce) {
    size_t end = std::min(ports.size(), begin + kProbesAtOnce);
    auto promises = kj::heapArrayBuilder<kj::Promise<std::string>>(end - begin);
    for (size_t i = begin; i < end; i++) promises.add(attempt(ports[i]));
    for (auto& answer : kj::joinPromises(promises.finish()).wait(io.waitScope))
      answers.push_back(kj::mv(answer));
  }
  return answers;
}

}  // namespace trainfs::tfs
