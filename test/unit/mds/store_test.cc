#include <kj/exception.h>

#include <atomic>
#include <thread>

#include "fixture.h"
#include "lib/eventually.h"
#include "mds/keys.h"
#include "mds/records.h"

namespace trainfs::mds {
namespace {

using namespace std::chrono_literals;

void put(Store& store, std::string_view key, std::string_view value) {
  auto txn = store.begin();
  txn->put(key, value);
  txn->commit();
}

std::string get(const View& view, std::string_view key) {
  return std::string(view.get(key).value_or("(nothing)"));
}

// The message of the kj::Exception that `action` throws.
template <typename Action>
std::string failureOf(Action&& action) {
  std::string message;
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { action(); }))
    message = exception->getDescription().cStr();
  return message;
}

}  // namespace

TEMPLATE_TEST_CASE("a transaction sees its own changes and leaves none when dropped", "[mds]",
                   MemStore, LmdbStore) {
  StoreHome<TestType> home;
  put(*home.store, "b", "old");
  put(*home.store, "c", "");
  {
    auto txn = home.store->begin();
    txn->put("a", "1");
    txn->put("b", "new");
    txn->erase("c");
    txn->erase("not there");
    CHECK(get(*txn, "a") == "1");
    CHECK(get(*txn, "b") == "new");
    CHECK(!txn->get("c"));
    CHECK(contentOf(*txn) == MemStore::Map{{"a", "1"}, {"b", "new"}});
  }
  CHECK(contentOf(*home.store->snapshot()) == MemStore::Map{{"b", "old"}, {"c", ""}});
  CHECK(home.store->snapshot()->get("c") == "");
}

TEMPLATE_TEST_CASE("scan starts at a key, keeps to a prefix, stops when told", "[mds]", MemStore,
                   LmdbStore) {
  StoreHome<TestType> home;
  auto txn = home.store->begin();
  for (auto key : {"a", "b1", "b2", "b3", "b\xff", "c"}) txn->put(key, key);
  auto scan = [](const View& view, std::string_view from, std::string_view prefix, size_t most) {
    std::vector<std::string> keys;
    view.scan(from, prefix, [&](std::string_view key, std::string_view) {
      keys.emplace_back(key);
      return keys.size() < most;
    });
    return keys;
  };
  using Keys = std::vector<std::string>;
  auto check = [&](const View& view) {
    CHECK(scan(view, "b", "b", 9) == Keys{"b1", "b2", "b3", "b\xff"});
    CHECK(scan(view, "b2", "b", 9) == Keys{"b2", "b3", "b\xff"});
    CHECK(scan(view, "b11", "b", 2) == Keys{"b2", "b3"});
    CHECK(scan(view, "x", "x", 9).empty());
    CHECK(scan(view, "", "", 9).size() == 6);
  };
  check(*txn);
  txn->commit();
  check(*home.store->snapshot());
}

TEMPLATE_TEST_CASE("a snapshot keeps what it saw while others write", "[mds]", MemStore,
                   LmdbStore) {
  StoreHome<TestType> home;
  put(*home.store, "key", "0");
  auto first = home.store->snapshot();
  put(*home.store, "key", "1");
  auto second = home.store->snapshot();
  auto txn = home.store->begin();
  txn->put("key", "2");
  CHECK(get(*first, "key") == "0");
  CHECK(get(*second, "key") == "1");
  CHECK(get(*home.store->snapshot(), "key") == "1");
  txn->commit();
  CHECK(get(*first, "key") == "0");
  CHECK(get(*second, "key") == "1");
  CHECK(get(*home.store->snapshot(), "key") == "2");
}

TEMPLATE_TEST_CASE("snapshots on other threads see whole transactions", "[mds][threads]", MemStore,
                   LmdbStore) {
  StoreHome<TestType> home;
  constexpr int kKeys = 20, kRounds = 200;
  auto write = [&](int round) {
    auto txn = home.store->begin();
    for (int i = 0; i < kKeys; i++) txn->put("key" + std::to_string(i), std::to_string(round));
    txn->commit();
  };
  write(0);
  std::atomic<bool> stop = false;
  std::atomic<int> torn = 0;
  auto read = [&] {
    while (!stop) {
      auto view = home.store->snapshot();
      auto expected = get(*view, "key0");
      view->scan("key", "key", [&](std::string_view, std::string_view value) {
        if (value != expected) torn++;
        return true;
      });
    }
  };
  std::thread one(read), two(read);
  for (int round = 1; round <= kRounds; round++) write(round);
  stop = true;
  one.join();
  two.join();
  CHECK(torn == 0);
}

TEST_CASE("an LMDB store keeps what was committed", "[mds]") {
  TemporaryDirectory directory;
  LmdbOptions options{.mapBytes = 16 * kMiB, .create = true};
  MemStore::Map content;
  {
    auto store = LmdbStore::open(directory.path(), options);
    auto txn = store->begin();
    format(*txn, "trainfs", 0, {1, 2});
    txn->commit();
    content = contentOf(*store->snapshot());
    store->begin()->put("dropped", "");
  }
  options.create = false;
  auto store = LmdbStore::open(directory.path(), options);
  CHECK(contentOf(*store->snapshot()) == content);
  CHECK(fsname(*store->snapshot()) == "trainfs");
}

TEST_CASE("an LMDB store says why it does not open", "[mds]") {
  TemporaryDirectory directory;
  auto open = [&](bool create) {
    return LmdbStore::open(directory.path(), {.mapBytes = 16 * kMiB, .create = create});
  };
  auto failure = [&] { return failureOf([&] { open(false); }); };
  CHECK(failure().find("no metadata store here") != std::string::npos);
  CHECK(failure().find(directory.path()) != std::string::npos);
  {
    auto store = open(true);
  }
  CHECK(failure().find("not formatted") != std::string::npos);
  {
    auto store = open(true);
    CHECK(failure().find("in use") != std::string::npos);
    auto txn = store->begin();
    format(*txn, "trainfs", 0, {});
    txn->put(kFormatVersionKey, encodeNumber(kFormatVersion + 1));
    txn->commit();
  }
  CHECK(failure().find("newer format") != std::string::npos);
  CHECK(failureOf([&] { open(true); }).find("newer format") != std::string::npos);
  CHECK(failureOf([&] {
          LmdbStore::open("/nonexistent", {.create = true});
        }).find("/nonexistent") != std::string::npos);
}

TEST_CASE("a full LMDB store refuses a transaction and goes on", "[mds]") {
  TemporaryDirectory directory;
  auto store = LmdbStore::open(directory.path(), {.mapBytes = kMiB, .create = true});
  put(*store, "kept", "value");
  std::string big(kMiB / 4, 'x');
  auto failure = kj::runCatchingExceptions([&] {
    auto txn = store->begin();
    for (int i = 0; i < 8; i++) txn->put("big" + std::to_string(i), big);
    txn->commit();
  });
  KJ_IF_MAYBE (exception, failure) {
    CHECK(exception->getType() == kj::Exception::Type::OVERLOADED);
    CHECK(std::string(exception->getDescription().cStr()).find("full") != std::string::npos);
  } else {
    FAIL("nothing was thrown");
  }
  CHECK(contentOf(*store->snapshot()).size() == 1);
  put(*store, "more", "value");
  CHECK(contentOf(*store->snapshot()).size() == 2);
}

TEST_CASE("an LMDB store grows more than a hundredfold while it is read", "[mds][threads]") {
  TemporaryDirectory directory;
  auto store = LmdbStore::open(directory.path(), {.create = true, .syncedCommits = false});
  constexpr int kRounds = 40, kPerRound = 250;
  const std::string value(1000, 'v');
  auto write = [&](int round) {
    auto txn = store->begin();
    for (int i = 0; i < kPerRound; i++)
      txn->put("v" + std::to_string(round * kPerRound + i), value);
    txn->put("rounds", std::to_string(round + 1));
    txn->commit();
  };
  auto entriesOf = [](const View& view) {
    int entries = 0;
    view.scan("v", "v", [&](std::string_view, std::string_view) { return ++entries > 0; });
    return entries;
  };
  put(*store, "rounds", "0");
  auto bytesBefore = store->fileBytes();
  auto before = store->snapshot();
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0, sizesSeen = 0;
  auto read = [&] {
    for (int last = -1; !stop;) {
      auto view = store->snapshot();
      int entries = entriesOf(*view);
      if (entries != kPerRound * std::stoi(get(*view, "rounds"))) wrong++;
      if (std::exchange(last, entries) != entries) sizesSeen++;
    }
  };
  std::thread one(read), two(read);
  for (int round = 0; round < kRounds; round++) {
    int seen = sizesSeen;
    write(round);
    CHECK(test::eventually([&] { return sizesSeen > seen; }, 30s));
  }
  stop = true;
  one.join();
  two.join();
  CHECK(wrong == 0);
  CHECK(entriesOf(*before) == 0);
  CHECK(entriesOf(*store->snapshot()) == kRounds * kPerRound);
  CHECK(store->fileBytes() > 100 * bytesBefore);
}

TEST_CASE("LMDB snapshots are bounded and reused", "[mds]") {
  TemporaryDirectory directory;
  auto store =
      LmdbStore::open(directory.path(), {.mapBytes = kMiB, .snapshotsMax = 4, .create = true});
  for (int round = 0; round < 3; round++) {
    std::vector<std::unique_ptr<View>> views;
    for (int i = 0; i < 4; i++) views.push_back(store->snapshot());
    CHECK(failureOf([&] { store->snapshot(); }).find("MDB_READERS_FULL") != std::string::npos);
  }
  put(*store, "key", "value");
  CHECK(get(*store->snapshot(), "key") == "value");
}

}  // namespace trainfs::mds
