// The table of locks by hand, and against a model that keeps a word per byte.
#include "mds/lock_table.h"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <random>

#include "lib/seed.h"

using namespace trainfs;
using namespace trainfs::mds;

namespace {

constexpr auto kShared = LockMode::kShared;
constexpr auto kExclusive = LockMode::kExclusive;
constexpr InodeId kFile{5}, kOther{6};

LockRequest request(uint64_t session, uint64_t owner, LockMode mode, LockRange range = {},
                    InodeId file = kFile, LockKind kind = LockKind::kRecord) {
  return {{session}, {file, kind, owner, range, mode, static_cast<uint32_t>(owner)}};
}
LockRequest whole(uint64_t session, uint64_t owner, LockMode mode) {
  return request(session, owner, mode, {}, kFile, LockKind::kWhole);
}

std::vector<std::pair<LockTicket, int>> ended(LockTable& table) {
  std::vector<std::pair<LockTicket, int>> result;
  for (auto [ticket, error] : table.takeEnded()) result.emplace_back(ticket, error);
  return result;
}
using Ended = std::vector<std::pair<LockTicket, int>>;

}  // namespace

TEST_CASE("ranges of an owner are split, replaced and merged") {
  LockRanges ranges;
  ranges.lock({0, 99}, kShared);
  ranges.lock({10, 19}, kExclusive);
  CHECK(ranges.all() == std::vector<LockRanges::Lock>{
                            {{0, 9}, kShared}, {{10, 19}, kExclusive}, {{20, 99}, kShared}});
  ranges.lock({10, 19}, kShared);
  CHECK(ranges.all() == std::vector<LockRanges::Lock>{{{0, 99}, kShared}});
  ranges.unlock({0, 0});
  ranges.unlock({50, kLockLastByte});
  CHECK(ranges.all() == std::vector<LockRanges::Lock>{{{1, 49}, kShared}});
  CHECK(ranges.conflict({0, 0}, kExclusive) == std::nullopt);
  CHECK(ranges.conflict({0, 1}, kShared) == std::nullopt);
  CHECK(ranges.conflict({49, 60}, kExclusive).has_value());
  ranges.lock({0, kLockLastByte}, kExclusive);
  CHECK(ranges.size() == 1);
  ranges.unlock({});
  CHECK(ranges.empty());
}

TEST_CASE("shared locks go together, exclusive ones alone, and an owner never blocks itself") {
  LockTable table;
  CHECK(table.tryLock(request(1, 1, kShared)).ok());
  CHECK(table.tryLock(request(2, 1, kShared)).ok());
  CHECK(table.tryLock(request(1, 1, kExclusive)).errnoOrZero() == EAGAIN);
  auto holder = table.conflict(request(1, 1, kExclusive));
  REQUIRE(holder);
  CHECK(holder->session == SessionId{2});
  CHECK(holder->lock.range == LockRange{});
  table.unlock(request(2, 1, kShared));
  CHECK(table.tryLock(request(1, 1, kExclusive)).ok());
  CHECK(table.tryLock(request(1, 2, kShared, {7, 7})).errnoOrZero() == EAGAIN);
  CHECK(table.tryLock(request(1, 1, kShared, {7, 7})).ok());
  CHECK(table.tryLock(request(1, 2, kShared, {7, 7})).ok());
  CHECK(table.locks() == 4);
}

TEST_CASE("flock and record locks do not see each other") {
  LockTable table;
  CHECK(table.tryLock(request(1, 1, kExclusive)).ok());
  CHECK(table.tryLock(whole(2, 1, kExclusive)).ok());
  CHECK(table.tryLock(whole(1, 1, kExclusive)).errnoOrZero() == EAGAIN);
}

TEST_CASE("waits are granted in the order in which they came") {
  LockTable table;
  CHECK(table.tryLock(request(1, 1, kExclusive)).ok());
  CHECK(*table.lock(request(2, 1, kShared, {0, 9}), 1) == false);
  CHECK(*table.lock(request(3, 1, kExclusive, {0, 9}), 2) == false);
  CHECK(*table.lock(request(4, 1, kShared, {5, 5}), 3) == false);
  CHECK(table.wantedFrom({1}));
  CHECK(!table.wantedFrom({2}));
  CHECK(table.waiting() == 3);
  table.unlock(request(1, 1, kShared));
  CHECK(ended(table) == Ended{{1, 0}, {3, 0}});
  table.unlock(request(2, 1, kShared));
  CHECK(ended(table).empty());
  table.drop({4});
  CHECK(ended(table) == Ended{{2, 0}});
  table.unlock(request(3, 1, kShared));
  CHECK(table.locks() == 0);
}

TEST_CASE("a wait that is given up is granted nothing") {
  LockTable table;
  CHECK(table.tryLock(request(1, 1, kExclusive)).ok());
  CHECK(*table.lock(request(2, 1, kExclusive), 1) == false);
  table.cancel(1);
  table.unlock(request(1, 1, kShared));
  CHECK(ended(table).empty());
  CHECK(table.tryLock(request(3, 1, kExclusive)).ok());
}

TEST_CASE("a lock that becomes a shared one lets readers in") {
  LockTable table;
  CHECK(table.tryLock(request(1, 1, kExclusive)).ok());
  CHECK(*table.lock(request(2, 1, kShared), 1) == false);
  CHECK(*table.lock(request(1, 1, kShared), 2) == true);
  CHECK(ended(table) == Ended{{1, 0}});
}

TEST_CASE("a circle of owners that wait for each other is refused") {
  LockTable table;
  CHECK(table.tryLock(request(1, 1, kExclusive, {0, 0})).ok());
  CHECK(table.tryLock(request(2, 1, kExclusive, {1, 1})).ok());
  CHECK(table.tryLock(request(3, 1, kExclusive, {}, kOther)).ok());
  CHECK(*table.lock(request(1, 1, kExclusive, {1, 1}), 1) == false);
  CHECK(*table.lock(request(2, 1, kShared, {}, kOther), 2) == false);
  CHECK(table.lock(request(3, 1, kExclusive, {0, 0}), 3).errnoOrZero() == EDEADLK);
  // Waiting for somebody who waits for somebody else is none.
  CHECK(*table.lock(request(4, 1, kExclusive, {0, 0}), 4) == false);
  table.drop({3});
  CHECK(ended(table) == Ended{{2, 0}});
}

TEST_CASE("two who share a record lock and both want it alone: the second is refused") {
  LockTable table;
  CHECK(table.tryLock(request(1, 1, kShared)).ok());
  CHECK(table.tryLock(request(2, 1, kShared)).ok());
  CHECK(*table.lock(request(1, 1, kExclusive), 1) == false);
  CHECK(table.lock(request(2, 1, kExclusive), 2).errnoOrZero() == EDEADLK);
  table.unlock(request(2, 1, kShared));
  CHECK(ended(table) == Ended{{1, 0}});
}

TEST_CASE("a circle that another thread of an owner closes is broken where it can be") {
  LockTable table;
  CHECK(table.tryLock(request(2, 1, kExclusive, {9, 9})).ok());
  CHECK(table.tryLock(request(3, 1, kExclusive, {0, 0})).ok());
  CHECK(*table.lock(request(2, 1, kExclusive, {0, 5}), 1) == false);  // 2 waits for 3
  CHECK(*table.lock(request(1, 1, kExclusive, {9, 9}), 2) == false);  // 1 waits for 2
  CHECK(table.tryLock(request(1, 1, kShared, {5, 5})).ok());          // and 2 for 1, too
  CHECK(ended(table) == Ended{{1, EDEADLK}});
}

TEST_CASE("two who share a flock and both want it alone get it one after the other") {
  LockTable table;
  CHECK(table.tryLock(whole(1, 1, kShared)).ok());
  CHECK(table.tryLock(whole(2, 1, kShared)).ok());
  CHECK(*table.lock(whole(1, 1, kExclusive), 1) == false);  // has let go of its share
  CHECK(*table.lock(whole(2, 1, kExclusive), 2) == true);
  CHECK(ended(table).empty());
  table.unlock(whole(2, 1, kShared));
  CHECK(ended(table) == Ended{{1, 0}});
}

TEST_CASE("a session has a limited number of locks and waits") {
  LockTable table;
  for (uint64_t i = 0; i + 2 <= kLocksPerSessionMax; ++i)
    REQUIRE(table.tryLock(request(1, 1, kShared, {2 * i, 2 * i})).ok());
  CHECK(table.tryLock(request(1, 1, kShared, {1u << 20, 1u << 20})).errnoOrZero() == ENOLCK);
  CHECK(table.tryLock(request(1, 1, kShared, {2, 2})).ok());  // it has it
  CHECK(table.restore(request(1, 1, kShared, {1u << 20, 1u << 20})));
  CHECK(!table.restore(request(1, 2, kExclusive, {2, 2})));
  CHECK(table.tryLock(request(2, 1, kShared)).ok());
  for (LockTicket ticket = 1; ticket <= kLockWaitsPerSessionMax; ++ticket)
    REQUIRE(*table.lock(request(3, ticket, kExclusive), ticket) == false);
  CHECK(table.lock(request(3, 0, kExclusive), 1u << 20).errnoOrZero() == ENOLCK);
  table.drop({3});
  CHECK(table.waiting() == 0);
  table.drop({1});
  CHECK(table.locks() == 1);
  CHECK(table.tryLock(request(1, 1, kShared)).ok());
}

TEST_CASE("thousands share a file, thousands wait for it, and each gets it alone in its turn") {
  constexpr uint64_t kHolders = 20'000, kWaiters = kLockWaitsPerSessionMax;
  LockTable table;
  for (uint64_t i = 1; i <= kHolders; ++i) REQUIRE(table.tryLock(whole(1, i, kShared)).ok());
  for (LockTicket ticket = 1; ticket <= kWaiters; ++ticket)
    REQUIRE(*table.lock(whole(2, ticket, kExclusive), ticket) == false);
  for (uint64_t i = 1; i < kHolders; ++i) table.unlock(whole(1, i, kShared));
  REQUIRE(ended(table).empty());
  table.unlock(whole(1, kHolders, kShared));
  for (LockTicket ticket = 1; ticket <= kWaiters; ++ticket) {
    REQUIRE(ended(table) == Ended{{ticket, 0}});
    REQUIRE(table.tryLock(whole(1, 1, kShared)).errnoOrZero() == EAGAIN);
    table.unlock(whole(2, ticket, kExclusive));
  }
  CHECK(table.locks() == 0);
  CHECK(table.waiting() == 0);
}

TEST_CASE("a thread's wait for another mode of what its description holds alone is granted") {
  LockTable table;
  CHECK(table.tryLock(whole(1, 1, kShared)).ok());
  CHECK(table.tryLock(whole(1, 2, kShared)).ok());
  CHECK(*table.lock(whole(1, 1, kExclusive), 1) == false);  // it has let go of its share
  CHECK(*table.lock(whole(1, 3, kExclusive), 2) == false);
  CHECK(table.tryLock(whole(1, 1, kShared)).ok());  // another thread
  CHECK(ended(table).empty());
  table.unlock(whole(1, 2, kShared));
  CHECK(ended(table) == Ended{{1, 0}});
  table.unlock(whole(1, 1, kExclusive));
  CHECK(ended(table) == Ended{{2, 0}});
}

TEST_CASE("the search for circles ends, however many hold and wait") {
  // Every owner holds a byte and waits for all of another file, which thousands share.
  constexpr uint64_t kOwners = 3'000;
  LockTable table;
  for (uint64_t i = 1; i <= kOwners; ++i) {
    REQUIRE(table.tryLock(request(1, i, kExclusive, {i, i})).ok());
    REQUIRE(table.tryLock(request(1, kOwners + i, kShared, {}, kOther)).ok());
  }
  for (uint64_t i = 1; i <= kOwners; ++i)
    REQUIRE(*table.lock(request(1, i, kExclusive, {}, kOther), i) == false);
  // Whom this one waits for wait for all of those, and none of those waits for it.
  CHECK(*table.lock(request(2, 1, kExclusive), kOwners + 1) == false);
}

// ---- against a model ----

namespace {

constexpr size_t kBytes = 12, kSessions = 3, kOwners = 2, kFiles = 2;

// What each owner has of each byte: 0, shared (1), exclusive (2).
struct Model {
  struct Wait {
    LockRequest request;
    LockTicket ticket;
  };
  using Bytes = std::array<int, kBytes>;
  std::map<std::tuple<InodeId, LockKind, uint64_t, uint64_t>, Bytes> held;
  std::vector<Wait> waits;  // in order

  static auto key(const LockRequest& r) {
    return std::tuple(r.lock.inode, r.lock.kind, r.session.value, r.lock.owner);
  }
  static bool blocks(const LockRequest& r, const Bytes& theirs) {
    for (auto byte = r.lock.range.first; byte <= r.lock.range.last; ++byte)
      if (theirs[byte] == 2 || (theirs[byte] == 1 && r.lock.mode == kExclusive)) return true;
    return false;
  }
  using Owner = std::pair<uint64_t, uint64_t>;
  std::set<Owner> blockers(const LockRequest& r) const {
    std::set<Owner> result;
    for (auto& [k, bytes] : held) {
      auto& [inode, kind, session, owner] = k;
      if (inode != r.lock.inode || kind != r.lock.kind || k == key(r)) continue;
      if (blocks(r, bytes)) result.insert({session, owner});
    }
    return result;
  }
  bool isFree(const LockRequest& r) const { return blockers(r).empty(); }
  void set(const LockRequest& r, int value) {
    auto& bytes = held.try_emplace(key(r), Bytes{}).first->second;
    for (auto byte = r.lock.range.first; byte <= r.lock.range.last; ++byte) bytes[byte] = value;
  }
  void grant(const LockRequest& r) { set(r, r.lock.mode == kExclusive ? 2 : 1); }
  // Whether waits of record locks go round in a circle that has this owner in it.
  bool circle(Owner from) const {
    std::set<Owner> seen;
    std::function<bool(Owner)> reaches = [&](Owner at) {
      if (!seen.insert(at).second) return false;
      for (auto& wait : waits) {
        auto& r = wait.request;
        if (r.lock.kind != LockKind::kRecord || Owner(r.session.value, r.lock.owner) != at)
          continue;
        for (auto next : blockers(r))
          if (next == from || reaches(next)) return true;
      }
      return false;
    };
    return reaches(from);
  }
  size_t locks() const {
    size_t count = 0;
    for (auto& [k, bytes] : held)
      for (size_t i = 0; i < kBytes; ++i)
        count += bytes[i] != 0 && (i == 0 || bytes[i - 1] != bytes[i]);
    return count;
  }
};

class Pair {
 public:
  explicit Pair(uint64_t seed) : random_(seed) {}

  void step() {
    auto request = draw();
    switch (random_() % 10) {
      case 0:
      case 1:
        return tryLock(request);
      case 2:
      case 3:
      case 4:
      case 5:
        return lock(request);
      case 6:
      case 7:
      case 8:
        unlock(request);
        break;
      default:
        if (random_() % 8 == 0) return drop(request.session);
        if (!model_.waits.empty()) cancel(random_() % model_.waits.size());
    }
    settle();
  }

  void check() {
    CHECK(table_.locks() == model_.locks());
    CHECK(table_.waiting() == model_.waits.size());
    for (auto& wait : model_.waits) {
      REQUIRE(table_.waits(wait.ticket));
      REQUIRE(!model_.isFree(wait.request));
      if (wait.request.lock.kind == LockKind::kRecord)
        REQUIRE(!model_.circle({wait.request.session.value, wait.request.lock.owner}));
    }
    for (uint64_t session = 1; session <= kSessions; ++session)
      for (auto kind : {LockKind::kRecord, LockKind::kWhole})
        for (auto file : {kFile, kOther})
          for (uint64_t byte = 0; byte < kBytes; ++byte) {
            auto probe = ::request(session, 99, kExclusive, {byte, byte}, file, kind);
            REQUIRE(table_.conflict(probe).has_value() == !model_.isFree(probe));
          }
    for (uint64_t session = 1; session <= kSessions; ++session) {
      bool wanted = false;
      for (auto& wait : model_.waits)
        for (auto& [blocker, owner] : model_.blockers(wait.request))
          wanted |= blocker == session && wait.request.session.value != session;
      REQUIRE(table_.wantedFrom({session}) == wanted);
    }
  }

 private:
  LockRequest draw() {
    auto kind = random_() % 3 == 0 ? LockKind::kWhole : LockKind::kRecord;
    LockRange range{0, kBytes - 1};
    if (kind == LockKind::kRecord) {
      range.first = random_() % kBytes;
      range.last = range.first + random_() % (kBytes - range.first);
    }
    return request(1 + random_() % kSessions, 1 + random_() % kOwners,
                   random_() % 2 ? kShared : kExclusive, range, random_() % kFiles ? kFile : kOther,
                   kind);
  }
  // flock lets go of what it had when it cannot have what it wants at once.
  bool makeRoom(const LockRequest& request) {
    if (model_.isFree(request)) return true;
    if (request.lock.kind == LockKind::kRecord) return false;
    model_.set(request, 0);
    grantWaits([] {});
    return model_.isFree(request);
  }
  void tryLock(const LockRequest& request) {
    auto status = table_.tryLock(request);
    bool possible = makeRoom(request);
    REQUIRE(status.errnoOrZero() == (possible ? 0 : EAGAIN));
    if (possible) model_.grant(request);
    settle();
  }
  void lock(const LockRequest& request) {
    auto ticket = ++tickets_;
    auto granted = table_.lock(request, ticket);
    if (makeRoom(request)) {
      REQUIRE((granted.ok() && *granted));
      model_.grant(request);
    } else {
      model_.waits.push_back({request, ticket});
      bool circle = request.lock.kind == LockKind::kRecord &&
                    model_.circle({request.session.value, request.lock.owner});
      if (circle) {
        REQUIRE(granted.errnoOrZero() == EDEADLK);
        model_.waits.pop_back();
      } else {
        REQUIRE((granted.ok() && !*granted));
      }
    }
    settle();
  }
  void unlock(const LockRequest& request) {
    table_.unlock(request);
    model_.set(request, 0);
  }
  void cancel(size_t index) {
    table_.cancel(model_.waits[index].ticket);
    model_.waits.erase(model_.waits.begin() + index);
  }
  void drop(SessionId session) {
    table_.drop(session);
    std::erase_if(model_.held,
                  [&](auto& entry) { return std::get<2>(entry.first) == session.value; });
    std::erase_if(model_.waits, [&](auto& wait) { return wait.request.session == session; });
    settle();
  }
  // Calls `between` before and after each grant.
  void grantWaits(const std::function<void()>& between) {
    between();
    for (bool again = true; again;) {
      again = false;
      for (size_t i = 0; i < model_.waits.size(); ++i) {
        auto wait = model_.waits[i];
        if (!model_.isFree(wait.request)) continue;
        model_.grant(wait.request);
        model_.waits.erase(model_.waits.begin() + i--);
        granted_.push_back(wait.ticket);
        again = true;
        between();
      }
    }
  }
  // Every wait that can be granted has been; one may have ended with EDEADLK instead, if the model
  // has it in a circle at some moment: a grant may also weaken a lock of an owner with several
  // waits, and so open a circle.
  void settle() {
    std::set<LockTicket> refused;
    auto ended = table_.takeEnded();
    for (auto [ticket, error] : ended)
      if (error != 0) refused.insert(ticket);
    std::set<LockTicket> inCircle;
    grantWaits([&] {
      for (auto& wait : model_.waits)
        if (refused.contains(wait.ticket) &&
            model_.circle({wait.request.session.value, wait.request.lock.owner}))
          inCircle.insert(wait.ticket);
    });
    for (auto& wait : model_.waits)
      if (refused.contains(wait.ticket)) REQUIRE(inCircle.contains(wait.ticket));
    std::erase_if(model_.waits, [&](auto& wait) { return refused.contains(wait.ticket); });
    std::set<LockTicket> byTable, byModel(granted_.begin(), granted_.end());
    for (auto [ticket, error] : ended)
      if (error == 0) byTable.insert(ticket);
    granted_.clear();
    REQUIRE(byTable == byModel);
  }

  std::mt19937_64 random_;
  LockTable table_;
  Model model_;
  LockTicket tickets_ = 0;
  std::vector<LockTicket> granted_;
};

}  // namespace

TEST_CASE("any sequence of locks does what a word per byte says") {
  auto seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  for (uint64_t round = 0; round < 40; ++round) {
    Pair pair(seed + round);
    for (int i = 0; i < 1000; ++i) {
      INFO("round " << round << ", step " << i);
      pair.step();
      pair.check();
    }
  }
}
