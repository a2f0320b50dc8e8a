// Writes whose caller is killed.
#include "file_io_fixture.h"

using namespace trainfs;
using namespace trainfs::client;
using namespace trainfs::client::test;

namespace {

TransferPtr transferIn(const std::shared_ptr<BufferPool>& pool,
                       const std::shared_ptr<Places>& places) {
  return std::make_shared<Transfer>(pool->take(), places->take());
}

}  // namespace

TEST_CASE("a killed caller's write that no OST was asked for leaves at once", "[client]") {
  FileFixture f;
  f.openToWrite();
  auto pool = std::make_shared<BufferPool>(4096);
  auto places = std::make_shared<Places>(1, std::chrono::milliseconds(0));
  OrderedAccess::Pass before;
  f.inode->access->exclusive([&](OrderedAccess::Pass pass) { before = std::move(pass); });
  bool answered = false;
  auto transfer = transferIn(pool, places);
  std::span<const std::byte> data(transfer->memory(), 10);
  f.files.write(f.inode, 0, data, false, [&](auto) { answered = true; }, transfer);
  REQUIRE(places->take() == nullptr);
  f.files.withdraw(f.inode, *transfer, FileIo::Direction::kWrite);
  CHECK(places->take() != nullptr);
  before.reset();
  CHECK(f.script.asked().empty());
  CHECK(!answered);
  // Nothing is left in the line.
  bool next = false;
  f.inode->access->exclusive([&](OrderedAccess::Pass) { next = true; });
  CHECK(next);
}

TEST_CASE("a killed caller's write that may happen is waited for by what comes later", "[client]") {
  FileFixture f;
  f.openToWrite();
  auto pool = std::make_shared<BufferPool>(4096);
  auto places = std::make_shared<Places>(1, std::chrono::milliseconds(0));
  auto transfer = transferIn(pool, places);
  std::span<const std::byte> data(transfer->memory(), 10);
  f.files.write(f.inode, 0, data, false, [](auto) {}, transfer);
  f.files.withdraw(f.inode, *transfer, FileIo::Direction::kWrite);
  transfer.reset();
  CHECK(f.data.withdrawals == 1);
  CHECK(places->take() == nullptr);  // its memory may still be sent
  std::string text = "later";
  f.files.write(f.inode, 0, std::as_bytes(std::span(text)), false, [](auto) {});
  CHECK(f.script.asked() == Names{"write"});
  REQUIRE(f.script.answer("write"));
  CHECK(places->take() != nullptr);
  CHECK(f.script.asked() == Names{"write"});
}

TEST_CASE("a killed caller's write that waited for the layout is not sent", "[client]") {
  FileFixture f;
  f.layout.components[0].chains.clear();
  f.tell();
  f.inodes.take(*f.inode, f.mds.node, f.inodes.now());
  f.openToWrite();
  auto pool = std::make_shared<BufferPool>(4096);
  auto places = std::make_shared<Places>(1, std::chrono::milliseconds(0));
  auto transfer = transferIn(pool, places);
  std::span<const std::byte> data(transfer->memory(), 10);
  Result<size_t> written(Errno(EINPROGRESS));
  f.files.write(f.inode, 0, data, false, [&](auto result) { written = result; }, transfer);
  CHECK(f.script.asked() == Names{"instantiate"});
  f.files.withdraw(f.inode, *transfer, FileIo::Direction::kWrite);
  CHECK(places->take() != nullptr);
  f.layout.components[0].chains = {ChainId{0}, ChainId{1}};
  f.tell();
  REQUIRE(f.script.answer("instantiate"));
  CHECK(f.script.asked().empty());
  CHECK(written.error() == Errno(EINTR));
}
