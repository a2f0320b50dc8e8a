// What a data client makes of servers that fail, are away, or have a newer map or no session for
// it.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>

#include "data_client_fixture.h"

namespace trainfs::client {

TEST_CASE("every fault of a server is survived", "[data_client]") {
  for (int i = 1; i < kFaults; ++i) {
    auto fault = static_cast<Fault>(i);
    INFO("fault " << i);
    Random random(5);
    FakeOss oss(0, 1);
    Client client;
    client.client->setMap(mapOf({&oss}));
    client.client->setSession({1}, 1);
    auto data = randomBytes(random, 3 * kMiB);
    auto extent = extentOf(1, 777, data.size());
    oss.chooseFaults(faultOnce(BulkOp::kWrite, fault));
    REQUIRE(client.write(extent, data) == 0);
    std::vector<std::byte> back;
    if (fault == Fault::kBadSum) continue;  // of writes only
    oss.chooseFaults(faultOnce(BulkOp::kRead, fault));
    REQUIRE(client.read(extent, back) == 0);
    REQUIRE(back == data);
    oss.chooseFaults(faultOnce(BulkOp::kSync, fault));
    REQUIRE(client.wait([&](auto done) { client.client->sync({{objectId(1), {0}}}, done); }) == 0);
  }
}

TEST_CASE("data that never matches its sums is an error, not data", "[data_client]") {
  Random random(6);
  FakeOss oss(0, 1);
  Client client;
  client.client->setMap(mapOf({&oss}));
  client.client->setSession({1}, 1);
  auto data = randomBytes(random, 200'000);
  REQUIRE(client.write(extentOf(1, 0, data.size()), data) == 0);
  oss.chooseFaults(faultOnce(BulkOp::kRead, Fault::kSpoiltData, 1000));
  std::vector<std::byte> back;
  auto before = oss.requests();
  CHECK(client.read(extentOf(1, 0, data.size()), back) == EIO);
  CHECK(oss.requests() - before == 2);
  oss.chooseFaults(faultOnce(BulkOp::kWrite, Fault::kBadSum, 1000));
  CHECK(client.write(extentOf(1, 0, data.size()), data) == EIO);
}

TEST_CASE("requests wait for a map, a session, and an OST that is away", "[data_client]") {
  Random random(7);
  FakeOss oss(3, 2);
  Client client;
  auto data = randomBytes(random, 50'000);
  auto extent = extentOf(1, 0, data.size(), 3);
  std::promise<int> written;
  client.client->write({{extent, data}},
                       [&](auto status) { written.set_value(status.errnoOrZero()); });
  client.client->setSession({1}, 1);
  client.client->setMap(mapOf({}, 1));
  client.client->setMap(mapOf({&oss}, 2));
  CHECK(outcomeOf(written) == 0);

  // Away, and back elsewhere, with another number of ports.
  oss.stop();
  std::vector<std::byte> back(data.size());
  std::promise<int> read;
  client.client->read({{extent, back}}, [&](auto status) { read.set_value(status.errnoOrZero()); });
  oss.start(5);
  client.client->setMap(mapOf({&oss}, 3));
  CHECK(outcomeOf(read) == 0);
  CHECK(back == data);

  // Away, and back on other ports.
  oss.stop();
  oss.start(5);
  client.client->setMap(mapOf({&oss}, 4));
  REQUIRE(client.read(extent, back) == 0);
  CHECK(back == data);

  // A name that must be looked up.
  oss.stop();
  oss.start(5);
  auto map = mapOf({&oss}, 5);
  map.osts[0].host = "localhost";
  client.client->setMap(map);
  REQUIRE(client.read(extent, back) == 0);
  CHECK(back == data);
}

TEST_CASE("a session that is over is reported once, and its requests go on under the next",
          "[data_client]") {
  Random random(8);
  FakeOss oss(0, 2), other(1, 1);
  Client client;
  std::atomic<int> reports{0};
  client.client->onStaleSession([&] { ++reports; });
  client.client->setMap(mapOf({&oss, &other}));
  client.client->setSession({1}, 1);
  auto data = randomBytes(random, 50'000);
  REQUIRE(client.write(extentOf(1, 0, data.size()), data) == 0);
  oss.setSession(1, 2);
  other.setSession(1, 2);
  std::vector<std::promise<int>> written(8);
  for (uint32_t i = 0; i < written.size(); ++i) {
    client.client->write({{extentOf(i, 0, data.size(), i % 2), data}}, [&written, i](auto status) {
      written[i].set_value(status.errnoOrZero());
    });
  }
  REQUIRE(eventually([&] { return reports == 1; }));
  client.client->setSession({1}, 2);
  for (auto& promise : written) {
    CHECK(outcomeOf(promise) == 0);
  }
  CHECK(reports == 1);
}

TEST_CASE("what was removed is not sent under a new session, and nothing else suffers",
          "[data_client]") {
  Random random(21);
  FakeOss oss(0, 1);
  oss.setSession(1, 2);
  Client client;
  client.client->setMap(mapOf({&oss}));
  client.client->setSession({1}, 1);
  auto data = randomBytes(random, 50'000);
  auto other = extentOf(2, 0, data.size());
  other.object.inode = {101};
  std::promise<int> waiting, kept;
  auto note = [](std::promise<int>& to) {
    return [&to](auto result) { to.set_value(result.errnoOrZero()); };
  };
  client.client->write({{extentOf(1, 0, data.size()), data}}, note(waiting));
  client.client->write({{other, data}}, note(kept));
  client.client->setRemoved({InodeId{100}});
  client.client->setSession({1}, 2);
  CHECK(outcomeOf(waiting) == EIO);
  CHECK(outcomeOf(kept) == 0);
  CHECK(client.write(extentOf(1, 0, data.size()), data) == EIO);
  std::vector<std::byte> back;
  CHECK(client.read(extentOf(1, 0, data.size()), back) == EIO);
  CHECK(client.read(other, back) == 0);
  CHECK(back == data);
  CHECK(!oss.object(objectId(1)));
  client.client->setRemoved({});
  CHECK(client.write(extentOf(1, 0, data.size()), data) == 0);
}

TEST_CASE("a session that an OSS refused only for a while goes on", "[data_client]") {
  Random random(13);
  FakeOss oss(0, 1);
  oss.setSession(9, 1);
  Client client;
  std::atomic<int> told{0};
  client.client->onStaleSession([&] { ++told; });
  client.client->setMap(mapOf({&oss}));
  client.client->setSession({1}, 1);
  auto data = randomBytes(random, 5000);
  std::promise<int> answer;
  client.client->write({{extentOf(1, 0, data.size()), data}},
                       [&](auto result) { answer.set_value(result.errnoOrZero()); });
  REQUIRE(eventually([&] { return told == 1; }));
  client.client->setSession({1}, 1);  // resumed: the MDS does know it
  REQUIRE(eventually([&] { return told == 2; }));
  oss.setSession(1, 1);
  CHECK(outcomeOf(answer) == 0);
  CHECK(told == 2);
}

TEST_CASE("what nobody waits for any more is not sent, and ends", "[data_client]") {
  Random random(14);
  FakeOss oss(0, 1);
  Client client({.workers = 1});
  client.client->setMap(mapOf({&oss}));
  auto data = randomBytes(random, 5000);
  std::vector<std::byte> place(5000);
  auto unwanted = std::make_shared<std::atomic<bool>>(false);
  std::promise<int> written, kept, readBack, unmapped;
  auto note = [](std::promise<int>& to) {
    return [&to](auto result) { to.set_value(result.errnoOrZero()); };
  };
  // Without a session they wait in the queue, without an OST beside it.
  client.client->write({{extentOf(1, 0, data.size()), data}}, note(written), unwanted);
  client.client->write({{extentOf(2, 0, data.size()), data}}, note(kept));
  client.client->read({{extentOf(2, 0, place.size()), place}}, note(readBack), unwanted);
  client.client->write({{extentOf(3, 0, data.size(), 7), data}}, note(unmapped), unwanted);
  unwanted->store(true);
  client.client->withdraw();
  for (auto* each : {&written, &readBack, &unmapped}) {
    CHECK(outcomeOf(*each) == EINTR);
  }
  client.client->setSession({1}, 1);
  CHECK(outcomeOf(kept) == 0);
  CHECK(oss.object(objectId(2)) == data);
  CHECK(!oss.object(objectId(1)));
  CHECK(!oss.object(objectId(3)));
  // One that comes too late is not sent, either.
  auto late = client.wait([&](auto done) {
    client.client->write({{extentOf(3, 0, data.size(), 7), data}}, done, unwanted);
  });
  CHECK(late == EINTR);
}

TEST_CASE("a write that was sent ends with its answer, though nobody waits for it",
          "[data_client]") {
  Random random(15);
  FakeOss oss(0, 1);
  std::promise<void> mayGoOn;
  oss.chooseFaults([goOn = mayGoOn.get_future().share()](const BulkHeader&) {
    goOn.wait();
    return Fault::kNone;
  });
  Client client({.workers = 1});
  client.client->setMap(mapOf({&oss}));
  client.client->setSession({1}, 1);
  auto data = randomBytes(random, 5000);
  auto unwanted = std::make_shared<std::atomic<bool>>(false);
  std::atomic<int> sent{-1};
  client.client->write(
      {{extentOf(1, 0, data.size()), data}}, [&](auto result) { sent = result.errnoOrZero(); },
      unwanted);
  REQUIRE(eventually([&] { return oss.requests() == 1; }));
  unwanted->store(true);
  client.client->withdraw();
  // By the end of this one the worker has left out all that it could.
  CHECK(client.wait([&](auto done) {
    client.client->write({{extentOf(3, 0, data.size(), 7), data}}, done, unwanted);
  }) == EINTR);
  CHECK(sent == -1);
  mayGoOn.set_value();
  REQUIRE(eventually([&] { return sent != -1; }));
  CHECK(sent == 0);
  CHECK(oss.object(objectId(1)) == data);
}

TEST_CASE("a newer chain version is taken from a newer map", "[data_client]") {
  Random random(9);
  FakeOss oss(0, 1);
  Client client;
  client.client->setMap(mapOf({&oss}));
  client.client->setSession({1}, 1);
  auto data = randomBytes(random, 5000);
  REQUIRE(client.write(extentOf(1, 0, data.size()), data) == 0);
  oss.setChainVersion(2);
  std::promise<int> written;
  auto requests = oss.requests();
  client.client->write({{extentOf(1, 0, data.size()), data}},
                       [&](auto status) { written.set_value(status.errnoOrZero()); });
  REQUIRE(eventually([&] { return oss.requests() > requests + 1; }));  // it asks again by itself
  client.client->setMap(mapOf({&oss}, 2));
  CHECK(outcomeOf(written) == 0);
}

TEST_CASE("a soft mount gives up in time, a hard one does not", "[data_client]") {
  Random random(10);
  FakeOss oss(0, 1);
  auto map = mapOf({&oss});
  Client client({.soft = true, .softTimeout = 200ms});
  client.client->setMap(map);
  client.client->setSession({1}, 1);
  std::vector<std::byte> back;
  REQUIRE(client.read(extentOf(1, 0, 100), back) == 0);
  // The server is there, but does not answer in time.
  oss.chooseFaults([](const BulkHeader&) { return Fault::kRetry; });
  CHECK(client.read(extentOf(1, 0, 100), back) == EIO);
  oss.chooseFaults([](const BulkHeader&) { return Fault::kCloseBefore; });
  CHECK(client.read(extentOf(1, 0, 100), back) == EIO);
  oss.stop();
  CHECK(client.read(extentOf(1, 0, 100), back) == EIO);
  CHECK(client.read(extentOf(1, 0, 100, 77), back) == EIO);  // an OST that nobody knows
  oss.start(1);
  oss.chooseFaults({});
  client.client->setMap(mapOf({&oss}, 2));
  CHECK(eventually([&] { return client.read(extentOf(1, 0, 100), back) == 0; }));
}

TEST_CASE("what is unanswered at the end completes with ESHUTDOWN", "[data_client]") {
  FakeOss oss(0, 1);
  std::vector<std::byte> back(100);
  std::atomic<int> shutDown{0}, other{0};
  auto count = [&](auto status) { ++(status.errnoOrZero() == ESHUTDOWN ? shutDown : other); };
  SECTION("nothing is known yet") {
    auto client = DataClient::create({});
    for (int i = 0; i < 10; ++i) client->read({{extentOf(i, 0, 100), back}}, count);
  }
  SECTION("the server is away") {
    auto client = DataClient::create({});
    client->setMap(mapOf({&oss}));
    client->setSession({1}, 1);
    oss.stop();
    for (int i = 0; i < 10; ++i) client->read({{extentOf(i, 0, 100), back}}, count);
  }
  SECTION("the server only ever says later") {
    oss.chooseFaults([](const BulkHeader&) { return Fault::kRetry; });
    auto client = DataClient::create({});
    client->setMap(mapOf({&oss}));
    client->setSession({1}, 1);
    for (int i = 0; i < 10; ++i) client->read({{extentOf(i, 0, 100), back}}, count);
    REQUIRE(eventually([&] { return oss.requests() > 20; }));
  }
  CHECK(shutDown == 10);
  CHECK(other == 0);
}

// ---- FakeOss itself ----

// Connects to that port and says hello, whether or not anybody is there: a connection that does not
// come about at once, for too many others wait to be accepted, is given up (socket(7): SO_SNDTIMEO
// holds for connect(2)).
int greet(uint16_t port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval patience{.tv_sec = 0, .tv_usec = 5000};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  BulkHeader hello;
  hello.op = BulkOp::kHello;
  hello.session = 1;
  hello.epoch = 1;
  sealHead(hello, {});
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    send(fd, &hello, sizeof hello, MSG_NOSIGNAL);
  return fd;
}

// Under the address or thread sanitizer, who finds such a connection in use after its end.
TEST_CASE("a fake server forgets who greeted it while it stopped", "[data_client]") {
  FakeOss oss(0, 1);
  for (int round = 0; round < 100; ++round) {
    uint16_t port = oss.address().ports.front();
    std::atomic<bool> stopped{false};
    auto greetAlways = [&] {
      while (!stopped) close(greet(port));
    };
    std::thread first(greetAlways), second(greetAlways);
    auto before = oss.hellos();
    REQUIRE(eventually([&] { return oss.hellos() > before; }));
    oss.stop();
    stopped = true;
    first.join();
    second.join();
    oss.start(1);
    auto greeted = oss.hellos();
    port = oss.address().ports.front();
    REQUIRE(eventually([&] {
      close(greet(port));
      return oss.hellos() > greeted;
    }));
  }
}

}  // namespace trainfs::client
