#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <random>

#include "lib/seed.h"
#include "oss/frame_reader.h"
#include "trainfs/object_id.h"

using namespace trainfs;
using namespace trainfs::oss;
using Step = FrameReader::Step;

namespace {

using Bytes = std::vector<std::byte>;

Bytes writeFrame(uint64_t requestId, size_t payloadBytes) {
  BulkExtent extent;
  auto id = encodeObjectId({InodeId{7}, 1, 0, 0});
  std::memcpy(extent.object, id.data(), id.size());
  extent.lengthBytes = payloadBytes;
  Bytes payload(payloadBytes, static_cast<std::byte>(requestId));
  std::vector<uint64_t> sums(blockPieces(0, payloadBytes));
  sumPieces(0, payload, sums.data());
  BulkHeader header;
  header.op = BulkOp::kWrite;
  header.requestId = requestId;
  header.extentCount = 1;
  header.sumCount = sums.size();
  header.payloadBytes = payloadBytes;
  Bytes frame(sizeof header + tailBytes(header));
  std::memcpy(frame.data() + sizeof header, &extent, sizeof extent);
  std::memcpy(frame.data() + sizeof header + sizeof extent, sums.data(), sums.size() * 8);
  sealHead(header, std::span(frame).subspan(sizeof header));
  std::memcpy(frame.data(), &header, sizeof header);
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

// Feeds a stream in pieces; returns the request ids of the frames found. Stops at a broken one.
std::vector<uint64_t> feed(FrameReader& reader, const Bytes& stream, test::Random& random) {
  std::vector<uint64_t> ids;
  Bytes payload;
  size_t fed = 0;
  while (true) {
    switch (reader.next()) {
      case Step::kMore: {
        if (fed == stream.size()) return ids;
        auto space = reader.space();
        REQUIRE(!space.empty());
        size_t most = std::min({space.size(), stream.size() - fed, size_t{5000}});
        size_t bytes = random.between(1, most);
        std::copy_n(stream.begin() + fed, bytes, space.begin());
        reader.received(bytes);
        fed += bytes;
        break;
      }
      case Step::kHead:
        payload.assign(reader.header().payloadBytes, std::byte{0});
        reader.setPayload(payload);
        break;
      case Step::kFrame:
        for (auto byte : payload)
          REQUIRE(byte == static_cast<std::byte>(reader.header().requestId));
        ids.push_back(reader.header().requestId);
        break;
      case Step::kBroken:
        REQUIRE(!reader.error().empty());
        return ids;
    }
  }
}

}  // namespace

TEST_CASE("frames come out whole however the stream is cut") {
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  test::Random random(seed);
  Bytes stream;
  std::vector<uint64_t> ids;
  for (uint64_t id = 1; id <= 200; ++id) {
    auto frame = writeFrame(id, random.between(1, random.chance(20) ? 300'000 : 3000));
    stream.insert(stream.end(), frame.begin(), frame.end());
    ids.push_back(id);
  }
  FrameReader reader;
  REQUIRE(feed(reader, stream, random) == ids);
  REQUIRE(reader.betweenFrames());
}

TEST_CASE("a damaged head never makes a frame") {
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  test::Random random(seed);
  auto frame = writeFrame(1, 1000);
  for (int i = 0; i < 2000; ++i) {
    Bytes damaged = frame;
    damaged[random.between(0, frame.size() - 1001)] ^=
        static_cast<std::byte>(1 << random.between(0, 7));
    FrameReader reader;
    auto ids = feed(reader, damaged, random);
    REQUIRE(ids.empty());
    // A count that became larger but legal asks for bytes that do not come.
    auto step = reader.next();
    REQUIRE((step == Step::kBroken || step == Step::kMore));
  }
}

TEST_CASE("a reply is not a request") {
  BulkHeader header;
  header.flags = kBulkReply;
  sealHead(header, {});
  FrameReader reader;
  REQUIRE(reader.next() == Step::kMore);
  std::memcpy(reader.space().data(), &header, sizeof header);
  reader.received(sizeof header);
  REQUIRE(reader.next() == Step::kBroken);
}
