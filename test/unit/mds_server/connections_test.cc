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

// Passes on what is written, and stops reading when told to.
class DeafStream final : public kj::AsyncIoStream {
 public:
  explicit DeafStream(kj::Own<kj::AsyncIoStream> inner) : inner_(kj::mv(inner)) {}
  bool deaf = false;
  int writing = 0;  // writes that the peer's buffers have no room for

  kj::Promise<size_t> tryRead(void* buffer, size_t least, size_t most) override {
    if (deaf) return kj::NEVER_DONE;
    return inner_->tryRead(buffer, least, most);
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
  stream.deaf = true;
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
  stream.deaf = false;
  fixture.until([&] { return failed > 0; });
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
