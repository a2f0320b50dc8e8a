#include "mds_connection.h"

#include "cluster.h"

namespace trainfs::tfs {

MdsConnection::MdsConnection(kj::AsyncIoContext& io, const MdsAddress& server,
                             const std::string& fsname, kj::Duration patience)
    : io_(io), timer_(io.provider->getTimer()), deadline_(timer_.now() + patience) {
  auto address = bounded(io.provider->getNetwork().parseAddress(server.host.c_str(), server.port));
  stream_ = bounded(address->connect());
  client_ = kj::heap<capnp::TwoPartyClient>(*stream_);
  auto hello = mds().helloRequest();
  hello.setProtocolVersion(rpc::PROTOCOL_VERSION);
  auto greeting = call(hello);
  KJ_REQUIRE(greeting.getProtocolVersion() == rpc::PROTOCOL_VERSION,
             "it speaks another version of the protocol", greeting.getProtocolVersion());
  KJ_REQUIRE(greeting.getFsname() == fsname.c_str(), "it serves another file system",
             greeting.getFsname());
  mdtIndex_ = greeting.getMdtIndex();
}

std::string askServers(const Mount& mount,
                       const std::function<void(MdsConnection&, const MdsAddress&)>& question) {
  if (mount.servers.empty())
    return "the source of the mount, '" + mount.source + "', is not HOST[,HOST...]:/FSNAME";
  auto io = kj::setupAsyncIo();
  auto patience = kPatience.count() * kj::SECONDS / static_cast<int64_t>(mount.servers.size());
  std::string errors;
  for (const MdsAddress& server : mount.servers) {
    try {
      MdsConnection connection(io, server, mount.fsname, patience);
      question(connection, server);
      return {};
    } catch (const kj::Exception& exception) {
      errors += (errors.empty() ? "" : "; ") + nameOf(server) + ": " + words(exception);
    }
  }
  return errors;
}

std::string nameOf(const MdsAddress& server) {
  bool v6 = server.host.find(':') != std::string::npos;
  return (v6 ? "[" + server.host + "]" : server.host) + ":" + std::to_string(server.port);
}

// KJ adds "remote exception: " and the failed call's name in front of it.
std::string words(const kj::Exception& exception) {
  if (exception.getType() == kj::Exception::Type::OVERLOADED) return "no answer in time";
  std::string text = exception.getDescription().cStr();
  for (const char* prefix : {"remote exception: ", "connect(): ", "::connect(): "})
    if (text.rfind(prefix, 0) == 0) text.erase(0, std::string(prefix).size());
  return text.substr(0, text.find('\n'));
}

}  // namespace trainfs::tfs
