// Truncations that cut objects: one step for whoever asks, done once, and to the end.
#include <catch2/catch_test_macros.hpp>

#include "fixture.h"
#include "trainfs/changes.h"

using namespace trainfs;
using namespace trainfs::mds;
using namespace trainfs::mds::test;

namespace {

constexpr uint16_t kSlot = 100;

// The file has 1,000 bytes, which `a` has reported; `a` has it open, `b` is there, too.
struct Truncated {
  Truncated() : shared(fixture), a(shared.a), b(shared.b), ost(shared.ost), file(shared.file) {
    object = objectsOf(fixture, file).front();
    ost.notes->objects[object] = 1000;
    REQUIRE(a.report(file, 1000, true) == 0);
  }

  // Does not wait.
  kj::Promise<int> truncating(Client& client, uint64_t sizeBytes, uint64_t sequence = 1) {
    auto request = KJ_ASSERT_NONNULL(client.session).executeRequest();
    request.setSlot(kSlot);
    request.setSequence(sequence);
    auto set = request.initOp().initSetattr();
    set.setInode(file.value);
    set.setMask(kSetSize | kCutObjects);
    set.setSizeBytes(sizeBytes);
    set.setKeepBytes(sizeBytes);
    return request.send().then([](auto response) { return int{response.getReply().getError()}; });
  }
  kj::Promise<uint64_t> asking(Client& client) {
    auto request = KJ_ASSERT_NONNULL(client.session).getattrRequest();
    request.setInode(file.value);
    return request.send().then([](auto response) {
      REQUIRE(response.getError() == 0);
      return response.getNode().getAttributes().getSizeBytes();
    });
  }
  template <typename T>
  bool answered(kj::Promise<T>& promise) {
    fixture.settle();
    return promise.poll(fixture.io.waitScope);
  }
  template <typename T>
  T answer(kj::Promise<T>& promise) {
    return promise.wait(fixture.io.waitScope);
  }
  Attributes recorded() { return loadNode(*fixture.store.snapshot(), file)->attributes; }
  bool underWay() { return mds::truncating(*fixture.store.snapshot(), file); }
  // The OST's answers are held back.
  void hold() { ost.notes->cuts = false; }
  void release() {
    ost.notes->cuts = true;
    ost.notes->release();
  }

  Fixture fixture;
  SharedFile shared;
  Client &a, &b;
  OstClient& ost;
  InodeId file;
  std::string object;
};

}  // namespace

TEST_CASE("objects are cut first, and whoever asks meanwhile is told the new size") {
  Truncated t;
  t.hold();
  auto cut = t.truncating(t.a, 10);
  CHECK(!t.answered(cut));
  CHECK(t.ost.notes->truncations == 1);
  CHECK(t.recorded().sizeBytes == 1000);
  auto other = t.asking(t.b), own = t.asking(t.a);
  CHECK(!t.answered(other));
  CHECK(!t.answered(own));
  t.release();
  CHECK(t.answer(cut) == 0);
  CHECK(t.ost.notes->objects[t.object] == 10);
  CHECK(t.answer(other) == 10);
  CHECK(t.answer(own) == 10);
  CHECK(t.recorded().settings == 1);
  CHECK(!t.underWay());
}

TEST_CASE("a truncation that is asked for again happens once") {
  Truncated t;
  t.ost.disconnect();
  auto first = t.truncating(t.a, 10);
  t.fixture.settle();
  CHECK(t.underWay());
  for (int second = 0; second < 22; ++second) {
    t.a.renew();
    t.b.renew();
    t.fixture.advance(1 * kj::SECONDS);
  }
  CHECK(kj::runCatchingExceptions([&] { t.answer(first); }) != nullptr);
  auto again = t.truncating(t.a, 10);
  CHECK(!t.answered(again));
  REQUIRE(t.ost.registerOst() == 0);
  CHECK(t.answer(again) == 0);
  CHECK(t.ost.notes->objects[t.object] == 10);
  CHECK(t.recorded().settings == 1);
  auto late = t.truncating(t.a, 10);
  CHECK(t.answer(late) == 0);
  CHECK(t.recorded().settings == 1);
  CHECK(t.ost.notes->truncations == 1);
}

TEST_CASE("truncations that wait for the same one go one after another") {
  Truncated t;
  t.hold();
  auto first = t.truncating(t.a, 30);
  CHECK(!t.answered(first));
  auto second = t.truncating(t.b, 20), third = t.truncating(t.a, 10, 2);
  CHECK(!t.answered(second));
  CHECK(!t.answered(third));
  t.release();
  CHECK(t.answer(first) == 0);
  CHECK(t.answer(second) == 0);
  CHECK(t.answer(third) == 0);
  CHECK(t.recorded().settings == 3);
  CHECK(!t.underWay());
}

TEST_CASE("a server that starts anew goes on with a truncation") {
  Truncated t;
  t.ost.disconnect();
  auto cut = t.truncating(t.a, 10);
  t.fixture.settle();
  t.fixture.restart();
  CHECK(t.underWay());
  REQUIRE(t.ost.registerOst() == 0);
  t.fixture.until([&] { return !t.underWay(); });
  CHECK(t.ost.notes->objects[t.object] == 10);
  CHECK(t.recorded().sizeBytes == 10);
  t.a.resume({{t.file, true}});
  t.b.resume({});
  auto again = t.truncating(t.a, 10);
  CHECK(t.answer(again) == 0);
  CHECK(t.recorded().settings == 1);
}

TEST_CASE("a truncation is finished when the session is over") {
  Truncated t;
  t.hold();
  auto cut = t.truncating(t.a, 10);
  t.fixture.settle();
  t.a.disconnect();
  t.fixture.until([&] {
    t.b.renew();
    t.ost.renew();
    t.fixture.advance(1 * kj::SECONDS);
    return t.fixture.server->core().sessions.find({t.a.id}) == nullptr;
  });
  CHECK(t.underWay());
  auto other = t.asking(t.b);
  CHECK(!t.answered(other));
  t.release();
  CHECK(t.answer(other) == 10);
  CHECK(t.recorded().sizeBytes == 10);
}

TEST_CASE("a file that cannot be cut has the size that its objects say, and the caller EIO") {
  Truncated t;
  t.ost.notes->uncuttable.insert(t.object);
  t.ost.notes->objects[t.object] = 700;
  auto cut = t.truncating(t.a, 10);
  CHECK(t.answer(cut) == EIO);
  CHECK(!t.underWay());
  auto size = t.asking(t.b);
  CHECK(t.answer(size) == 1000);  // nothing makes a file shorter but a truncation
  auto again = t.truncating(t.a, 10);
  CHECK(t.answer(again) == EIO);
  CHECK(t.ost.notes->truncations == 1);
  t.fixture.until([&] { return writersOf(*t.fixture.store.snapshot(), t.file).size() == 1; });
  t.ost.notes->uncuttable.clear();
  auto next = t.truncating(t.a, 10, 2);
  CHECK(t.answer(next) == 0);
  CHECK(t.recorded().sizeBytes == 10);
}

TEST_CASE("a report that comes during a truncation says nothing of the size") {
  Truncated t;
  t.hold();
  auto cut = t.truncating(t.b, 10);
  CHECK(!t.answered(cut));
  CHECK(t.a.report(t.file, 1000, true) == 0);
  t.release();
  CHECK(t.answer(cut) == 0);
  auto size = t.asking(t.b);
  CHECK(t.answer(size) == 10);
  t.fixture.until([&] {
    t.fixture.advance(1 * kj::SECONDS);
    return writersOf(*t.fixture.store.snapshot(), t.file) == std::vector{SessionId{t.a.id}};
  });
  CHECK(t.recorded().sizeBytes == 10);
}

TEST_CASE("an OST that is slow is not asked twice in one registration") {
  Truncated t;
  t.hold();
  auto cut = t.truncating(t.a, 10);
  for (int second = 0; second < 15; ++second) {
    t.a.renew();
    t.b.renew();
    t.ost.renew();
    t.fixture.advance(1 * kj::SECONDS);
  }
  CHECK(t.ost.notes->truncations == 1);
  REQUIRE(t.ost.registerOst() == 0);
  CHECK(!t.answered(cut));
  CHECK(t.ost.notes->truncations == 2);
  t.release();
  CHECK(t.answer(cut) == 0);
}

TEST_CASE("a truncation of what is removed meanwhile leaves nothing") {
  Truncated t;
  t.hold();
  auto cut = t.truncating(t.b, 10);
  CHECK(!t.answered(cut));
  t.a.release(t.file);
  REQUIRE(t.a.unlink("f") == 0);
  CHECK(!t.underWay());
  t.release();
  CHECK(t.answer(cut) == ESTALE);
}

TEST_CASE("a truncation that is refused touches no object") {
  Truncated t;
  auto cut = t.truncating(t.a, kFileBytesMax + 1);
  CHECK(t.answer(cut) == EFBIG);
  CHECK(t.ost.notes->truncations == 0);
  CHECK(!t.underWay());
  CHECK(t.recorded().settings == 0);
}
