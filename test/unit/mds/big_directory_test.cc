// A directory of many entries: no operation reads more of it than it answers. TRAINFS_BIG_DIRECTORY
// says how many (1,000,000 is the long form).
#include <algorithm>

#include "fixture.h"
#include "lib/long_form.h"
#include "mds/keys.h"

namespace trainfs::mds {
namespace {

constexpr size_t kPerTransaction = 5'000;

// Counts what scans are shown.
class CountingTxn final : public Txn {
 public:
  CountingTxn(std::unique_ptr<Txn> txn, size_t& visited)
      : txn_(std::move(txn)), visited_(visited) {}
  std::optional<std::string_view> get(std::string_view key) const override {
    return txn_->get(key);
  }
  void scan(std::string_view from, std::string_view prefix,
            const std::function<bool(std::string_view, std::string_view)>& visit) const override {
    txn_->scan(from, prefix, [&](std::string_view key, std::string_view value) {
      ++visited_;
      return visit(key, value);
    });
  }
  void put(std::string_view key, std::string_view value) override { txn_->put(key, value); }
  void erase(std::string_view key) override { txn_->erase(key); }
  void commit() override { txn_->commit(); }

 private:
  std::unique_ptr<Txn> txn_;
  size_t& visited_;
};

}  // namespace

TEST_CASE("a directory of very many entries is not read as a whole", "[mds]") {
  const size_t entries = test::longForm("TRAINFS_BIG_DIRECTORY", 100'000);
  Fixture<LmdbStore> fs;
  auto parent = fs.directory(kRootInode, "big");
  uint64_t next = nextInode(*fs.view()).value;
  for (size_t made = 0; made < entries; made += kPerTransaction) {
    auto txn = fs.store.begin();
    for (size_t i = made; i < std::min(made + kPerTransaction, entries); i++) {
      CreateOp op{.parent = parent, .name = "n" + std::to_string(i), .mode = S_IFIFO | 0600};
      op.newInode = {next++};
      REQUIRE(apply(fs.command(op), *txn).error == 0);
    }
    txn->commit();
  }

  size_t visited = 0;
  auto txn = std::make_unique<CountingTxn>(fs.store.begin(), visited);
  auto limited = [&](size_t most, auto&& action) {
    visited = 0;
    action();
    CHECK(visited <= most);
  };
  limited(2, [&] { CHECK(lookup(*txn, parent, "n777").ok()); });
  limited(2, [&] { CHECK(lookup(*txn, parent, "none").errnoOrZero() == ENOENT); });
  limited(129, [&] { CHECK(readdir(*txn, parent, 0, 128)->entries.size() == 128); });
  limited(4, [&] {
    CHECK(apply(fs.command(RmdirOp{kRootInode, "big", {}}), *txn).error == ENOTEMPTY);
  });
  limited(8, [&] { CHECK(apply(fs.command(UnlinkOp{parent, "n5", {}}), *txn).error == 0); });
  limited(8,
          [&] { CHECK(apply(fs.command(RenameOp{parent, "n6", parent, "n7"}), *txn).error == 0); });
  limited(8, [&] {
    auto other = fs.creation(kRootInode, "other", S_IFDIR | 0755);
    other.newInode = {next++};
    CHECK(apply(fs.command(other), *txn).error == 0);
    CHECK(apply(fs.command(RenameOp{kRootInode, "other", kRootInode, "big"}), *txn).error ==
          ENOTEMPTY);
  });
  txn->commit();

  size_t seen = 0;
  uint64_t cookie = 0;
  for (bool end = false; !end;) {
    auto page = readdir(*fs.view(), parent, cookie, 1000);
    REQUIRE(page->entries.size() <= 1000);
    seen += page->entries.size();
    if (!page->entries.empty()) cookie = page->entries.back().cookie;
    end = page->end;
  }
  CHECK(seen == entries - 2);
}

}  // namespace trainfs::mds
