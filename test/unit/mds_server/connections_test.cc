// What a peer may do to a connection, and that others do not notice.
#include <sys/socket.h>
#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>

#include "fixture.h"
#include "mds/peer_stream.h"

using namespace trainfs;
using namespace trainfs::mds;
using namespace trainfs::mds::test;

namespace {

kj::Own<kj::AsyncIoStream> connect(Fixture& fixture) {
  return fixture.io.provider->getNetwork()
      .parseAddress("127.0.0.1", fixture.server->port())
      .wait(fixture.io.waitScope)
      ->connect()
      .wait(fixture.io.waitScope);
}

void send(Fixture& fixture, kj::AsyncIoStream& stream, const std::string& bytes) {
  stream.write(bytes.data(), bytes.size()).wait(fixture.io.waitScope);
}

// The server has closed it, whatever it said before.
bool isCut(Fixture& fixture, kj::AsyncIoStream& stream) {
  fixture.settle();
  return stream.readAllBytes()
      .ignoreResult()
      .catch_([](kj::Exception&&) {})
      .poll(fixture.io.waitScope);
}

std::string words(std::initializer_list<uint32_t> halves) {
  std::string bytes;
  for (uint32_t half : halves) bytes.append(reinterpret_cast<const char*>(&half), sizeof half);
  return bytes;
}

}  // namespace

TEST_CASE("whoever speaks another protocol is cut off at once") {
  Fixture fixture;
  Client a(fixture, "a");
  a.open();
  std::string tls("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  for (auto& bytes :
       {std::string("GET / HTTP/1.1\r\nHost: mds\r\n\r\n"), tls + std::string(500, 'x'),
        words({1 << 20, 1, 1, 1}),                   // 2^20 segments
        words({0, 0xffffffff}),                      // 2^32 words
        words({0, kMessageBytesMax / 8 - 1, 0, 0}),  // lawful later, not as the first message
        words({0, 1, 0xffffffff, 0xffffffff})}) {    // a pointer to nowhere
    auto stream = connect(fixture);
    send(fixture, *stream, bytes);
    CHECK(isCut(fixture, *stream));
  }
  CHECK(a.renew());
  a.create("still");
}

TEST_CASE("a connection on which nothing is said, or only half of it, is closed") {
  Fixture fixture;
  auto silent = connect(fixture), half = connect(fixture);
  send(fixture, *half, words({0, 4, 0}));
  fixture.advance(fixture.options.greetingMax - 1 * kj::SECONDS);
  CHECK(!isCut(fixture, *silent));
  CHECK(!isCut(fixture, *half));
  fixture.advance(2 * kj::SECONDS);
  CHECK(isCut(fixture, *silent));
  CHECK(isCut(fixture, *half));
}

TEST_CASE("a peer that falls silent is let go, one that goes on speaking is not") {
  Fixture fixture;
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  b.open();
  for (int i = 0; i < 20; ++i) {
    fixture.advance(5 * kj::SECONDS);
    CHECK(a.renew());
  }
  CHECK_THROWS(b.renew());
}

namespace {

// Passes on what is written, and reads no further when told so.
class DeafStream final : public kj::AsyncIoStream {
 public:
  explicit DeafStream(kj::Own<kj::AsyncIoStream> inner) : inner_(kj::mv(inner)) {}
  int writing = 0;  // writes that the peer's buffers have no room for

  // The next so many bytes still reach it.
  void hear(size_t bytes) {
    hears_ = bytes;
    changed_.notify();
  }
  kj::Promise<size_t> tryRead(void* buffer, size_t least, size_t most) override {
    auto* to = static_cast<kj::byte*>(buffer);
    size_t got = 0;
    while (got < least) {
      while (hears_ == 0) co_await changed_.wait();
      size_t some = kj::min(most - got, hears_);
      size_t more = co_await inner_->tryRead(to + got, kj::min(least - got, some), some);
      if (more == 0) break;
      got += more;
      hears_ -= kj::min(hears_, more);  // the read may have begun before it was told
    }
    co_return got;
  }
  kj::Promise<void> write(const void* buffer, size_t bytes) override {
    return counted(inner_->write(buffer, bytes));
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    return counted(inner_->write(pieces));
  }
  kj::Promise<void> whenWriteDisconnected() override { return inner_->whenWriteDisconnected(); }
  void shutdownWrite() override { inner_->shutdownWrite(); }

 private:
  kj::Promise<void> counted(kj::Promise<void> write) {
    ++writing;
    return write.attach(kj::defer([this] { --writing; }));
  }
  kj::Own<kj::AsyncIoStream> inner_;
  size_t hears_ = SIZE_MAX;
  Condition changed_;
};

// Says its question's number so many times.
class Talkative final : public rpc::Mds::Server {
 public:
  kj::Promise<void> hello(HelloContext context) override {
    auto bytes = context.getParams().getProtocolVersion();
    context.getResults().initFsname(bytes);
    return kj::READY_NOW;
  }
};

}  // namespace

TEST_CASE("answers to a peer that takes none are bounded; it is closed, and others go on") {
  constexpr int kCalls = 60'000;  // of about 100 bytes, with answers of 4,000
  Fixture fixture;
  Client other(fixture, "other");
  other.open();
  auto created = other.execute([](rpc::Operation::Builder op) {
    auto create = op.initCreate();
    create.setParent(kRootInode.value);
    create.setName("link");
    create.setMode(S_IFLNK | 0777);
    create.setExclusive(true);
    std::string target(4000, 'x');
    create.setTarget({reinterpret_cast<const kj::byte*>(target.data()), target.size()});
  });
  auto link = created.getReply().getNode().getAttributes().getInode();

  auto inner = connect(fixture);
  int few = 64 * 1024;  // what the kernel keeps for the peer is not what is tested here
  inner->setsockopt(SOL_SOCKET, SO_SNDBUF, &few, sizeof few);
  DeafStream stream(kj::mv(inner));
  capnp::TwoPartyClient greedy(stream);
  auto request = greedy.bootstrap().castAs<rpc::Mds>().openSessionRequest();
  request.initRequest().setFsname("trainfs");
  request.getRequest().setCallback(kj::heap<FakeCallback>(std::make_shared<FakeCallback::Notes>()));
  auto session = request.send().wait(fixture.io.waitScope).getOpened().getSession();
  stream.hear(0);
  int failed = 0;
  kj::Vector<kj::Promise<void>> answers(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    auto call = session.readlinkRequest();
    call.setInode(link);
    answers.add(call.send()
                    .ignoreResult()
                    .catch_([&](kj::Exception&&) { ++failed; })
                    .eagerlyEvaluate(nullptr));
  }
  // Its questions stay with it: the server has stopped reading them.
  for (int i = 0; i < 20; ++i) fixture.settle();
  CHECK(stream.writing == 1);
  CHECK(other.renew());
  other.create("file");

  for (int i = 0; i < 10; ++i) {
    fixture.advance(fixture.options.idleMax / 6);
    CHECK(other.renew());
  }
  stream.hear(SIZE_MAX);
  fixture.until([&] { return failed > 0; });
}

TEST_CASE("a slow peer that is not read because its answers wait is not taken for a silent one") {
  auto io = kj::setupAsyncIo();
  kj::TimerImpl timer(kj::origin<kj::TimePoint>());
  auto settle = [&](kj::Duration duration) {
    for (auto end = timer.now() + duration; timer.now() < end;) {
      timer.advanceTo(timer.now() + 1 * kj::SECONDS);
      io.waitScope.poll();
    }
  };
  auto pipe = kj::newTwoWayPipe();  // has no buffers
  PeerStream messages(*pipe.ends[0], timer, {10 * kj::SECONDS, 60 * kj::SECONDS});
  capnp::TwoPartyVatNetwork network(messages, capnp::rpc::twoparty::Side::SERVER);
  auto system = capnp::makeRpcServer(network, kj::heap<Talkative>());
  std::string why;
  bool closed = false;
  auto watching = messages.watch(network)
                      .catch_([&](kj::Exception&& e) {
                        closed = true;
                        why = e.getDescription().cStr();
                      })
                      .eagerlyEvaluate(nullptr);

  DeafStream stream(kj::mv(pipe.ends[1]));
  capnp::TwoPartyClient peer(stream);
  auto mds = peer.bootstrap().castAs<rpc::Mds>();
  int answers = 0;
  kj::Vector<kj::Promise<void>> calls;
  auto ask = [&](uint32_t bytes) {
    auto call = mds.helloRequest();
    call.setProtocolVersion(bytes);
    calls.add(call.send()
                  .then([&](auto) { ++answers; }, [](kj::Exception&&) {})
                  .eagerlyEvaluate(nullptr));
    io.waitScope.poll();
  };
  ask(1);
  io.waitScope.poll();
  REQUIRE(answers == 1);
  // A small answer that it does not take, and behind that more than may wait.
  stream.hear(0);
  ask(100);  // a read is under way, and gets this one
  REQUIRE(answers == 2);
  ask(100);
  for (size_t asked = 0; asked <= kQueuedBytesMax; asked += kQueuedBytesMax / 4)
    ask(kQueuedBytesMax / 4);
  for (int i = 0; i < 3; ++i) ask(1);  // it goes on speaking
  settle(50 * kj::SECONDS);
  stream.hear(300);  // all of the small one at last
  io.waitScope.poll();
  CHECK(answers == 3);
  settle(50 * kj::SECONDS);
  INFO(why);
  CHECK(!closed);
  stream.hear(SIZE_MAX);
  settle(5 * kj::SECONDS);
  CHECK(answers == 11);
  ask(1);
  CHECK(answers == 12);

  SECTION("and silent when it is read and says nothing") {
    settle(59 * kj::SECONDS);
    CHECK(!closed);
    settle(16 * kj::SECONDS);
    CHECK(closed);
  }
  SECTION("and closed when it takes no more answers") {
    stream.hear(0);
    for (int i = 0; i < 6; ++i) ask(kQueuedBytesMax / 4);
    settle(80 * kj::SECONDS);
    CHECK(closed);
  }
}

TEST_CASE("a session that uses all of its slots does not keep others from theirs") {
  Fixture fixture;
  Client a(fixture, "a"), b(fixture, "b");
  a.open();
  b.open();
  // No OST is there: each of them waits.
  std::vector<kj::Promise<void>> waiting;
  auto file = a.create("waits", /*writing=*/true);
  int refused = 0;
  for (uint32_t i = 0; i < kSlotsPerSession + 10; ++i) {
    auto request = KJ_ASSERT_NONNULL(a.session).instantiateRequest();
    request.setInode(file.value);
    waiting.push_back(request.send()
                          .ignoreResult()
                          .catch_([&](kj::Exception&& e) {
                            refused += e.getType() == kj::Exception::Type::OVERLOADED;
                          })
                          .eagerlyEvaluate(nullptr));
  }
  fixture.settle();
  CHECK(refused == 10);
  b.create("goes on");
  CHECK(a.renew());
  waiting.clear();  // dropping the calls ends the waiting
  fixture.settle();
  a.create("again");
}

TEST_CASE("slots of connections are free again when those go") {
  Fixture fixture;
  fixture.stop();
  fixture.options.connectionsMax = 8;
  fixture.start();
  Client a(fixture, "a");
  a.open();
  std::vector<kj::Own<kj::AsyncIoStream>> crowd;
  for (int i = 0; i < 20; ++i) crowd.push_back(connect(fixture));
  fixture.settle();
  CHECK(a.renew());
  int open = 0;
  for (auto& one : crowd) open += !isCut(fixture, *one);
  CHECK(open == 7);
  crowd.clear();
  fixture.settle();
  Client b(fixture, "b");
  b.open();
}
