#include <kj/exception.h>

#include "fixture.h"
#include "mds/keys.h"
#include "mds/records.h"
#include "striping/layout_record.h"
#include "trainfs/acl_names.h"

namespace trainfs::mds {
namespace {

InodeRecord sampleInode() {
  InodeRecord record;
  record.attributes = {.inode = {7}, .mode = S_IFREG | 0644, .uid = 1, .gid = 2, .links = 3};
  record.attributes.sizeBytes = uint64_t{1} << 62;
  record.attributes.atime = {-5, 999'999'999};
  record.attributes.settings = 11;
  record.attributes.acls = kHasDefaultAcl;
  record.linkable = true;
  record.parent = {6};
  record.place = 8;
  record.hashSeed = 5;
  record.target = "target";
  record.layout = striping::encodeLayout(placedLayout());
  return record;
}

// Every shorter form, and one byte more, must be refused with an exception, not read past.
template <typename Decode>
void requireDamageIsRefused(const std::string& bytes, Decode decode) {
  decode(bytes);
  for (size_t size = 0; size < bytes.size(); size++)
    REQUIRE_THROWS_AS(decode(bytes.substr(0, size)), kj::Exception);
  REQUIRE_THROWS_AS(decode(bytes + '\0'), kj::Exception);
}

}  // namespace

TEST_CASE("keys sort as their numbers do", "[mds]") {
  CHECK(inodeKey({255}) < inodeKey({256}));
  CHECK(inodeKey({1}) < inodeKey({uint64_t{1} << 48}));
  CHECK(entryKey({1}, {1, 0}, "z") < entryKey({1}, {1, 1}, "a"));
  CHECK(entryKey({1}, {1, 32767}, "z") < entryKey({1}, {2, 0}, "a"));
  CHECK(entryPlaceKey({1}, {2, 0}) < entryKey({1}, {2, 0}, "a"));
  CHECK(garbageKey({1}, 255) < garbageKey({1}, 256));
  CHECK(entryKey({1}, {1, 0}, std::string(kNameBytesMax, 'x')).size() < 511);
}

TEST_CASE("keys give back what they were made of", "[mds]") {
  uint64_t hash = (uint64_t{1} << 48) - 1;
  auto key = entryKey({3}, {hash, 32767}, "name");
  CHECK(parseEntryKey(key).name == "name");
  CHECK(parseEntryKey(key).place.cookie() == kCookieMax);
  auto place = EntryPlace::fromCookie(EntryPlace{77, 5}.cookie());
  CHECK(place.hash == 77);
  CHECK(place.ordinal == 5);
  CHECK(relatedId(bySessionKey(Relation::kOrphan, {8}, {9})) == 9);
  CHECK(relatedId(byInodeKey(Relation::kWriter, {8}, {9})) == 9);
  CHECK(sessionOfKey(sessionKey({5})) == SessionId{5});
  CHECK(inodeOfGarbageKey(garbageKey({5}, 1)) == InodeId{5});
  auto link = placeOfLink(linkKey({5}, placeOfEntry(key)));
  CHECK(link.parent == InodeId{3});
  CHECK(link.place.cookie() == kCookieMax);
  CHECK(xattrName(xattrKey({5}, "user.a")) == "user.a");
  for (uint64_t seed : {0u, 1u, 2u}) CHECK(nameHash(seed, "name") < uint64_t{1} << 48);
  CHECK(nameHash(1, "name") != nameHash(2, "name"));
}

TEST_CASE("records come back as they were", "[mds]") {
  auto record = sampleInode();
  auto decoded = decodeInode({7}, encodeInode(record));
  CHECK(decoded.attributes == record.attributes);
  CHECK(decoded.parent == record.parent);
  CHECK(decoded.place == record.place);
  CHECK(decoded.hashSeed == record.hashSeed);
  CHECK(decoded.target == record.target);
  CHECK(decodeLayoutOf(decoded) == placedLayout());
  SlotRecord slot{9, {.error = ENOENT, .inode = {4}, .existed = true, .value = 8}};
  CHECK(decodeSlot(encodeSlot(slot)).sequence == 9);
  CHECK(decodeSlot(encodeSlot(slot)).outcome == slot.outcome);
}

TEST_CASE("damaged records are refused", "[mds]") {
  requireDamageIsRefused(encodeInode(sampleInode()), [](auto bytes) { decodeInode({7}, bytes); });
  requireDamageIsRefused(encodeEntry({{1}, 2, 3}), [](auto bytes) { decodeEntry(bytes); });
  requireDamageIsRefused(encodeSlot({1, {}}), [](auto bytes) { decodeSlot(bytes); });
  requireDamageIsRefused(encodeSession({{1}, 2, "name"}),
                         [](auto bytes) { decodeSession({1}, bytes); });
  requireDamageIsRefused(encodeOst({1, "uuid", "host", {1, 2}, 3, 4}),
                         [](auto bytes) { decodeOst(bytes); });
  requireDamageIsRefused(encodeNumber(5), [](auto bytes) { decodeNumber("key", bytes); });
  auto newer = encodeInode(sampleInode());
  for (char version : {0, 3, 5}) {
    newer[0] = version;
    CHECK_THROWS_AS(decodeInode({7}, newer), kj::Exception);
  }
  auto record = sampleInode();
  record.layout = "garbage";
  CHECK_THROWS_AS(decodeLayoutOf(record), kj::Exception);
  CHECK_THROWS_AS(parseEntryKey("D"), kj::Exception);
  CHECK_THROWS_AS(placeOfLink("L"), kj::Exception);
}

}  // namespace trainfs::mds
