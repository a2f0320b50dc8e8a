// Records and keys of the metadata store, and ACLs: a kj exception (of an ACL, an error) that says
// what is damaged, or a value that is written and read back the same.
#include <kj/exception.h>

#include "mds/acl.h"
#include "mds/keys.h"
#include "mds/records.h"
#include "refusal.h"

using namespace trainfs;
using namespace trainfs::mds;
using fuzz::require;

std::vector<std::string> fuzz::seeds() {
  InodeRecord file;
  file.attributes.inode = {5};
  file.attributes.mode = 0100644;
  file.target = "elsewhere";
  file.layout = std::string("\1\0\0\0\0\0", 6);
  OstRecord ost{.index = 3,
                .uuid = "0f8fad5b-d9cb-469f-a165-70867728950e",
                .host = "oss1",
                .ports = {7180, 7181},
                .start = 5};
  SlotRecord slot{.sequence = 9, .outcome = {.error = 2, .inode = {5}}};
  std::vector<std::string> seeds = {
      encodeInode(file),
      encodeEntry({.inode = {5}, .type = 8}),
      encodeSlot(slot),
      encodeSession({.id = {2}, .epoch = 1, .clientName = "host:/mnt"}),
      encodeOst(ost),
      encodeNumber(77),
      entryKey({1}, {.hash = 4}, "name"),
      xattrKey({1}, "user.x"),
      sessionKey({2}),
      garbageKey({5}, 1),
      byInodeKey(Relation::kOrphan, {5}, {2}),
      linkKey({5}, {.parent = {1}, .place = {.hash = 4, .ordinal = 1}}),
      encodeAcl({{0x01, 7, ~0u}, {0x02, 5, 7}, {0x04, 5, ~0u}, {0x10, 4, ~0u}, {0x20, 0, ~0u}})};
  for (size_t i = 0; i < seeds.size(); ++i) seeds[i].insert(seeds[i].begin(), static_cast<char>(i));
  return seeds;
}

namespace {

template <typename Decode, typename Encode>
void roundTrip(std::string_view bytes, Decode decode, Encode encode) {
  auto once = encode(decode(bytes));
  require(encode(decode(once)) == once);
}

void decodeAsAcl(std::string_view bytes) {
  auto acl = decodeAcl(bytes);
  if (!acl) return;
  auto once = encodeAcl(*acl);
  require(*decodeAcl(once) == *acl);
  auto inherited = inheritedAcl(*acl, 0640);
  require(decodeAcl(encodeAcl(inherited)).ok() && (permissionsOf(inherited) & ~0640u) == 0);
  setPermissions(*acl, 0751);
  require(decodeAcl(encodeAcl(*acl)).ok() && permissionsOf(*acl) == 0751);
}

void decodeAs(uint8_t kind, std::string_view bytes) {
  switch (kind) {
    case 0:
      roundTrip(bytes, [](auto bytes) { return decodeInode({5}, bytes); }, encodeInode);
      decodeLayoutOf(decodeInode({5}, bytes));
      break;
    case 1:
      return roundTrip(bytes, decodeEntry, encodeEntry);
    case 2:
      return roundTrip(bytes, decodeSlot, encodeSlot);
    case 3:
      return roundTrip(bytes, [](auto bytes) { return decodeSession({2}, bytes); }, encodeSession);
    case 4:
      return roundTrip(bytes, decodeOst, encodeOst);
    case 5:
      return roundTrip(
          bytes, [](auto bytes) { return decodeNumber("number", bytes); }, encodeNumber);
    case 6:
      require(parseEntryKey(bytes).name.size() < bytes.size());
      require(placeOfEntry(bytes).place.cookie() == parseEntryKey(bytes).place.cookie());
      break;
    case 7:
      require(xattrName(bytes).size() < bytes.size());
      break;
    case 8:
      sessionOfKey(bytes);
      break;
    case 9:
      inodeOfGarbageKey(bytes);
      break;
    case 10:
      relatingId(bytes);
      relatedId(bytes);
      break;
    case 11:
      placeOfLink(bytes);
      break;
    default:
      decodeAsAcl(bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  fuzz::mayRefuse([&] { decodeAs(data[0], fuzz::text(data + 1, size - 1)); });
  return 0;
}
