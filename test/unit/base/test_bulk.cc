#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <functional>
#include <vector>

#include "lib/seed.h"
#include "trainfs/bulk.h"
#include "trainfs/object_id.h"

namespace trainfs {

namespace {

// A frame under construction: what a sender has before it seals the head.
struct Frame {
  BulkHeader header;
  std::vector<BulkExtent> extents;
  std::vector<uint64_t> sums;

  std::vector<std::byte> tail() const {
    std::vector<std::byte> bytes(extents.size() * sizeof(BulkExtent) +
                                 sums.size() * sizeof(uint64_t));
    if (!extents.empty())
      std::memcpy(bytes.data(), extents.data(), extents.size() * sizeof(BulkExtent));
    if (!sums.empty())
      std::memcpy(bytes.data() + extents.size() * sizeof(BulkExtent), sums.data(),
                  sums.size() * sizeof(uint64_t));
    return bytes;
  }

  // Seals the frame as it stands and lets a receiver judge it.
  std::string judge() {
    auto bytes = tail();
    sealHead(header, bytes);
    if (auto wrong = checkHeader(header); !wrong.empty()) return wrong;
    return checkHead(header, bytes);
  }
};

BulkExtent extentOf(uint64_t inode, uint64_t offsetBytes, uint32_t lengthBytes) {
  BulkExtent extent;
  auto bytes = encodeObjectId({.inode = {inode}, .generation = 1});
  std::memcpy(extent.object, bytes.data(), bytes.size());
  extent.offsetBytes = offsetBytes;
  extent.lengthBytes = lengthBytes;
  return extent;
}

// Counts, payload and sums that fit the extents.
Frame frameOf(BulkOp op, uint16_t flags, std::vector<BulkExtent> extents) {
  Frame frame;
  frame.header.op = op;
  frame.header.flags = flags;
  frame.header.extentCount = static_cast<uint16_t>(extents.size());
  if (op == (flags & kBulkReply ? BulkOp::kRead : BulkOp::kWrite))
    for (auto& extent : extents) {
      frame.header.payloadBytes += extent.lengthBytes;
      frame.sums.resize(frame.sums.size() + blockPieces(extent.offsetBytes, extent.lengthBytes),
                        77);
    }
  frame.header.sumCount = static_cast<uint16_t>(frame.sums.size());
  frame.extents = std::move(extents);
  return frame;
}

Frame goodFrame(BulkOp op, uint16_t flags) {
  switch (op) {
    case BulkOp::kHello:
      return frameOf(op, flags, {});
    case BulkOp::kSync:
      return frameOf(op, flags, {extentOf(2, 0, 0)});
    case BulkOp::kStat:
      return frameOf(op, flags,
                     {flags & kBulkReply ? extentOf(2, kFileBytesMax, 99) : extentOf(2, 0, 0)});
    default:
      return frameOf(op, flags, {extentOf(2, 100, 200), extentOf(3, kBlockBytes - 1, 70000)});
  }
}

constexpr BulkOp kOps[] = {BulkOp::kHello, BulkOp::kRead, BulkOp::kWrite,
                           BulkOp::kPunch, BulkOp::kSync, BulkOp::kStat};

struct Damage {
  const char* what;
  const char* words;  // that the judgement must hold
  BulkOp op;
  uint16_t flags;
  std::function<void(Frame&)> harm;
};

bool refused(const Damage& damage) {
  Frame frame = goodFrame(damage.op, damage.flags);
  damage.harm(frame);
  auto judgement = frame.judge();
  CAPTURE(damage.what, judgement);
  return judgement.find(damage.words) != std::string::npos;
}

}  // namespace

TEST_CASE("pieces are cut at block borders of the object", "[bulk]") {
  CHECK(blockPieces(0, 0) == 0);
  CHECK(blockPieces(12345, 0) == 0);
  CHECK(blockPieces(0, 1) == 1);
  CHECK(blockPieces(0, kBlockBytes) == 1);
  CHECK(blockPieces(0, kBlockBytes + 1) == 2);
  CHECK(blockPieces(kBlockBytes - 1, 1) == 1);
  CHECK(blockPieces(kBlockBytes - 1, 2) == 2);
  CHECK(blockPieces(kBlockBytes - 1, kBlockBytes + 2) == 3);
  CHECK(blockPieces(kFileBytesMax - 1, 1) == 1);
  CHECK(blockPieces(0, UINT32_MAX) == 65536);
}

TEST_CASE("the sums of data are those of its blocks, and find every changed byte", "[bulk]") {
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  test::Random random(seed);
  for (int round = 0; round < 50; ++round) {
    uint64_t offset = random.between(0, 5 * kBlockBytes);
    std::vector<std::byte> data(random.between(1, 4 * kBlockBytes));
    for (auto& byte : data) byte = static_cast<std::byte>(random.between(0, 255));
    std::vector<uint64_t> sums(blockPieces(offset, data.size()));
    REQUIRE(sumPieces(offset, data, sums.data()) == sums.size());

    std::vector<uint64_t> slow;  // byte by byte
    for (size_t begin = 0, i = 1; i <= data.size(); ++i)
      if (i == data.size() || (offset + i) % kBlockBytes == 0) {
        slow.push_back(blockSum(data.data() + begin, i - begin));
        begin = i;
      }
    REQUIRE(sums == slow);
    REQUIRE(verifyPieces(offset, data, sums.data()));
    data[random.between(0, data.size() - 1)] ^= std::byte{1};
    REQUIRE_FALSE(verifyPieces(offset, data, sums.data()));
  }
}

TEST_CASE("the sum of a block is the XXH3 that the format page promises", "[bulk]") {
  REQUIRE(blockSum("", 0) == 0x2d06800538d394c2);  // the published value for empty input
}

TEST_CASE("a good frame of every operation passes, as request and as reply", "[bulk]") {
  for (BulkOp op : kOps)
    for (uint16_t flags : {uint16_t{0}, kBulkReply}) {
      CAPTURE(static_cast<int>(op), flags);
      CHECK(goodFrame(op, flags).judge() == "");
    }
}

TEST_CASE("a failed reply carries no payload and may leave the extents out", "[bulk]") {
  for (BulkOp op : kOps)
    for (uint8_t status = 1; status <= 5; ++status) {
      CAPTURE(static_cast<int>(op), int{status});
      Frame frame = frameOf(op, kBulkReply, {});
      frame.header.status = static_cast<BulkStatus>(status);
      frame.header.errorCode = status == 1 ? EIO : 0;
      CHECK(frame.judge() == "");
      frame.header.payloadBytes = 1;
      CHECK(frame.judge() != "");
    }
}

TEST_CASE("the largest legal frame passes and one more byte does not", "[bulk]") {
  std::vector<BulkExtent> extents;
  uint32_t each = kBulkPayloadBytesMax / kBulkExtentsMax;
  for (uint32_t i = 0; i < kBulkExtentsMax; ++i)
    extents.push_back(extentOf(i + 1, kBlockBytes - 1, each));
  Frame frame = frameOf(BulkOp::kWrite, 0, extents);
  CHECK(frame.header.payloadBytes == kBulkPayloadBytesMax);
  CHECK(frame.sums.size() <= kBulkSumsMax);
  CHECK(sizeof(BulkHeader) + frame.tail().size() <= kBulkHeadBytesMax);
  CHECK(frame.judge() == "");
  CHECK(frameOf(BulkOp::kRead, 0, extents).judge() == "");

  extents[0].lengthBytes += 1;
  CHECK(frameOf(BulkOp::kWrite, 0, extents).judge().find("payload of 8388609 bytes") !=
        std::string::npos);
  CHECK(frameOf(BulkOp::kRead, 0, extents).judge().find("8388609 bytes") != std::string::npos);
}

TEST_CASE("a header that is not ours is refused before anything else is looked at", "[bulk]") {
  CHECK(refused(
      {"magic", "not a bulk frame", BulkOp::kRead, 0, [](Frame& f) { f.header.magic ^= 1; }}));
  CHECK(refused(
      {"version", "version 3, only 2", BulkOp::kRead, 0, [](Frame& f) { f.header.version = 3; }}));
  for (int op : {0, 5, 8, 99, 255})
    CHECK(refused({"op", "unknown operation", BulkOp::kRead, 0,
                   [&](Frame& f) { f.header.op = static_cast<BulkOp>(op); }}));
  CHECK(
      refused({"flags", "unknown flags", BulkOp::kRead, 0, [](Frame& f) { f.header.flags = 2; }}));
  CHECK(
      refused({"reserved", "reserved", BulkOp::kRead, 0, [](Frame& f) { f.header.reserved = 1; }}));
}

TEST_CASE("status and error code must make sense together", "[bulk]") {
  CHECK(refused({"unknown", "unknown status 6", BulkOp::kRead, kBulkReply,
                 [](Frame& f) { f.header.status = static_cast<BulkStatus>(6); }}));
  CHECK(refused({"request", "status 5 in a request", BulkOp::kRead, 0,
                 [](Frame& f) { f.header.status = BulkStatus::kRetry; }}));
  CHECK(refused({"no code", "error code 0", BulkOp::kSync, kBulkReply,
                 [](Frame& f) { f.header.status = BulkStatus::kIoError; }}));
  CHECK(refused({"code in request", "error code 5", BulkOp::kSync, 0,
                 [](Frame& f) { f.header.errorCode = EIO; }}));
}

TEST_CASE("counts beyond their limits are refused by the header alone", "[bulk]") {
  auto header = [](BulkOp op, uint16_t flags, auto harm) {
    BulkHeader header = goodFrame(op, flags).header;
    harm(header);
    return checkHeader(header);
  };
  CHECK(header(BulkOp::kHello, 0, [](auto& h) { h.extentCount = 1; }) != "");
  for (BulkOp op : kOps) {
    if (op == BulkOp::kHello) continue;
    CHECK(header(op, 0, [](auto& h) { h.extentCount = 0; }) != "");
    CHECK(header(op, kBulkReply, [](auto& h) { h.extentCount = 0; }) != "");
    CHECK(header(op, 0, [](auto& h) { h.extentCount = kBulkExtentsMax + 1; }) != "");
    CHECK(header(op, 0, [](auto& h) { h.extentCount = UINT16_MAX; }) != "");
  }
  CHECK(header(BulkOp::kWrite, 0, [](auto& h) { h.sumCount = kBulkSumsMax + 1; }) != "");
  CHECK(header(BulkOp::kWrite, 0, [](auto& h) { h.payloadBytes = kBulkPayloadBytesMax + 1; }) !=
        "");
  CHECK(header(BulkOp::kRead, 0, [](auto& h) { h.payloadBytes = 1; }) != "");
  CHECK(header(BulkOp::kRead, 0, [](auto& h) { h.sumCount = 1; }) != "");
  CHECK(header(BulkOp::kWrite, kBulkReply, [](auto& h) { h.payloadBytes = 1; }) != "");
}

TEST_CASE("extents that lie are refused", "[bulk]") {
  CHECK(refused({"missing in request", "unknown flags", BulkOp::kRead, 0,
                 [](Frame& f) { f.extents[1].flags = kExtentMissing; }}));
  CHECK(refused({"flags", "extent 1: unknown flags", BulkOp::kRead, kBulkReply,
                 [](Frame& f) { f.extents[1].flags = 4; }}));
  for (BulkOp op : {BulkOp::kRead, BulkOp::kWrite, BulkOp::kSync})
    CHECK(refused({"verifier in request", "a verifier where none belongs", op, 0,
                   [](Frame& f) { f.extents[0].verifier = 1; }}));
  CHECK(refused({"verifier in read", "a verifier where none belongs", BulkOp::kRead, kBulkReply,
                 [](Frame& f) { f.extents[0].verifier = 1; }}));
  CHECK(refused({"verify a write", "unknown flags 4", BulkOp::kWrite, 0,
                 [](Frame& f) { f.extents[0].flags = kExtentVerify; }}));
  CHECK(refused({"inode", "inode 0", BulkOp::kRead, 0,
                 [](Frame& f) { std::memset(f.extents[0].object, 0, 8); }}));
  CHECK(refused({"offset", "too large", BulkOp::kRead, 0,
                 [](Frame& f) { f.extents[0].offsetBytes = kFileBytesMax + 1; }}));
  CHECK(refused({"wrap", "too large", BulkOp::kRead, 0,
                 [](Frame& f) { f.extents[0].offsetBytes = UINT64_MAX; }}));
  CHECK(refused({"end", "overflows", BulkOp::kRead, 0,
                 [](Frame& f) { f.extents[0].offsetBytes = kFileBytesMax - 199; }}));
  for (BulkOp op : {BulkOp::kRead, BulkOp::kWrite, BulkOp::kPunch})
    CHECK(refused(
        {"empty", "extent 0: length 0", op, 0, [](Frame& f) { f.extents[0].lengthBytes = 0; }}));
  for (BulkOp op : {BulkOp::kSync, BulkOp::kStat})
    CHECK(refused({"length", "must be 0", op, 0, [](Frame& f) { f.extents[0].lengthBytes = 1; }}));

  Frame last = goodFrame(BulkOp::kPunch, 0);
  last.extents[0].offsetBytes = kFileBytesMax - 200;
  CHECK(last.judge() == "");
}

TEST_CASE("payload and sums must be what the extents say", "[bulk]") {
  for (auto [op, flags] : {std::pair{BulkOp::kWrite, uint16_t{0}}, {BulkOp::kRead, kBulkReply}}) {
    CHECK(refused({"short", "payload of", op, flags, [](Frame& f) { --f.header.payloadBytes; }}));
    CHECK(refused({"long", "payload of", op, flags, [](Frame& f) { ++f.header.payloadBytes; }}));
    auto sums = [](int change) {
      return [change](Frame& f) {
        f.sums.resize(f.sums.size() + change);
        f.header.sumCount += change;
      };
    };
    CHECK(refused({"fewer sums", "sums for", op, flags, sums(-1)}));
    CHECK(refused({"more sums", "sums for", op, flags, sums(1)}));
  }
}

TEST_CASE("a tail of another length than the header says is refused", "[bulk]") {
  Frame frame = goodFrame(BulkOp::kWrite, 0);
  auto bytes = frame.tail();
  for (int change : {-1, 1, -static_cast<int>(bytes.size())}) {
    auto other = bytes;
    other.resize(bytes.size() + change);
    sealHead(frame.header, bytes);
    CHECK(checkHead(frame.header, other).find("bytes of extents and sums") != std::string::npos);
  }
}

TEST_CASE("no flipped bits in a head go unnoticed", "[bulk]") {
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  test::Random random(seed);
  for (int round = 0; round < 20000; ++round) {
    BulkOp op = kOps[random.between(0, std::size(kOps) - 1)];
    Frame frame = goodFrame(op, random.chance(50) ? kBulkReply : 0);
    auto tail = frame.tail();
    sealHead(frame.header, tail);

    std::vector<std::byte> head(sizeof(BulkHeader) + tail.size());
    std::memcpy(head.data(), &frame.header, sizeof(BulkHeader));
    std::copy(tail.begin(), tail.end(), head.begin() + sizeof(BulkHeader));
    auto damaged = head;
    for (uint64_t flips = random.between(1, 4); flips > 0; --flips)
      damaged[random.between(0, head.size() - 1)] ^= std::byte(1 << random.between(0, 7));

    BulkHeader header;
    std::memcpy(&header, damaged.data(), sizeof header);
    auto judgement = checkHeader(header);
    if (judgement.empty()) judgement = checkHead(header, std::span(damaged).subspan(sizeof header));
    REQUIRE(judgement.empty() == (damaged == head));
  }
}

TEST_CASE("objects are spread over workers evenly, and always the same way", "[bulk]") {
  // Ports of an OSS are tied to this: a change would need a new version of the frames.
  CHECK(workerOf({.inode = {1}}, 1) == 0);
  CHECK(workerOf({.inode = {0x1234}, .generation = 5, .component = 6, .stripe = 7}, 1000) == 831);
  std::vector<int> load(4);
  for (uint32_t i = 0; i < 4000; ++i) ++load[workerOf({.inode = {1 + i / 4}, .stripe = i % 4}, 4)];
  for (int each : load) CHECK((each > 850 && each < 1150));
}

}  // namespace trainfs
