// askCluster and probe against a server on the loopback.
#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <future>
#include <thread>

#include "cluster.h"
#include "mds.capnp.h"

using namespace trainfs;
using namespace trainfs::tfs;

namespace {

class FakeMds final : public rpc::Mds::Server {
 public:
  explicit FakeMds(bool silent) : silent_(silent) {}
  kj::Promise<void> hello(HelloContext context) override {
    if (silent_) return kj::NEVER_DONE;
    auto results = context.getResults();
    results.setProtocolVersion(rpc::PROTOCOL_VERSION);
    results.setFsname("trainfs");
    return kj::READY_NOW;
  }
  kj::Promise<void> status(StatusContext context) override {
    auto status = context.getResults().initStatus();
    status.setFsname("trainfs");
    auto osts = status.initOsts(2);
    osts[0].setIndex(1);
    osts[1].setIndex(0);
    osts[1].setActive(true);
    osts[1].setTotalBytes(123);
    auto map = status.initMap().initOsts(1);
    map[0].setIndex(0);
    map[0].setHost("127.0.0.1");
    map[0].initPorts(2).set(1, 9);
    return kj::READY_NOW;
  }

 private:
  bool silent_;
};

// Serves on a thread until it is destroyed.
class Server {
 public:
  explicit Server(bool silent = false) {
    std::promise<uint16_t> bound;
    auto port = bound.get_future();
    thread_ = std::thread([this, silent, &bound] {
      auto io = kj::setupAsyncIo();
      auto address = io.provider->getNetwork().parseAddress("127.0.0.1", 0).wait(io.waitScope);
      auto listener = address->listen();
      capnp::TwoPartyServer server(kj::heap<FakeMds>(silent));
      auto done = kj::newPromiseAndCrossThreadFulfiller<void>();
      stop_ = kj::mv(done.fulfiller);
      bound.set_value(static_cast<uint16_t>(listener->getPort()));
      auto serving = server.listen(*listener);
      done.promise.wait(io.waitScope);
    });
    port_ = port.get();
  }
  ~Server() {
    stop_->fulfill();
    thread_.join();
  }
  uint16_t port() const { return port_; }

 private:
  std::thread thread_;
  kj::Own<kj::CrossThreadPromiseFulfiller<void>> stop_;
  uint16_t port_ = 0;
};

Mount mountOn(std::vector<uint16_t> ports, std::string fsname = "trainfs") {
  Mount mount{.point = "/m", .source = "x:/" + fsname, .fsname = fsname};
  for (uint16_t port : ports) mount.servers.push_back({"127.0.0.1", port});
  return mount;
}

// A port that nobody listens on, held as long as this lives so that nobody else gets it.
class DeadPort {
 public:
  DeadPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(bind(fd_, generic, length) == 0);
    REQUIRE(getsockname(fd_, generic, &length) == 0);
    port_ = ntohs(address.sin_port);
  }
  ~DeadPort() { close(fd_); }
  uint16_t port() const { return port_; }

 private:
  int fd_;
  uint16_t port_ = 0;
};

}  // namespace

TEST_CASE("the status comes from the first MDS that answers, targets by index") {
  Server server;
  DeadPort dead;
  auto status = askCluster(mountOn({dead.port(), server.port()}));
  REQUIRE(status.error == "");
  REQUIRE(status.server == "127.0.0.1:" + std::to_string(server.port()));
  REQUIRE(status.osts.size() == 2);
  REQUIRE(status.osts[0].index == 0);
  REQUIRE(status.osts[0].active);
  REQUIRE(status.osts[0].totalBytes == 123);
  REQUIRE(status.dataPorts.size() == 2);
  REQUIRE(status.dataPorts[1].port == 9);
}

TEST_CASE("every MDS that failed is named with its reason") {
  DeadPort dead;
  auto status = askCluster(mountOn({dead.port()}));
  REQUIRE(status.error == "127.0.0.1:" + std::to_string(dead.port()) + ": Connection refused");
  Server server;
  status = askCluster(mountOn({server.port()}, "other"));
  REQUIRE(status.error.find("it serves another file system") != std::string::npos);
  REQUIRE(askCluster({.point = "/m", .source = "odd"}).error ==
          "the source of the mount, 'odd', is not HOST[,HOST...]:/FSNAME");
}

TEST_CASE("an MDS that does not answer is given up in time") {
  Server server(true);
  auto begin = std::chrono::steady_clock::now();
  auto status = askCluster(mountOn({server.port()}));
  REQUIRE(status.error.find("no answer in time") != std::string::npos);
  REQUIRE(std::chrono::steady_clock::now() - begin < kPatience * 3);
}

TEST_CASE("ports are probed all at once, each with its own answer") {
  Server server;
  DeadPort dead;
  auto answers = probe({{0, "127.0.0.1", server.port()}, {1, "127.0.0.1", dead.port()}});
  REQUIRE(answers == std::vector<std::string>{"", "Connection refused"});
}
