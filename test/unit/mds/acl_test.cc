// What becomes of ACLs and modes: tables of values, and random changes against a small model.
#include "mds/acl.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "fixture.h"
#include "lib/seed.h"
#include "store_check.h"
#include "trainfs/acl_names.h"

namespace trainfs::mds {
namespace {

constexpr uint16_t kUserObj = 0x01, kUser = 0x02, kGroupObj = 0x04, kGroup = 0x08, kMask = 0x10,
                   kOther = 0x20;
constexpr uint32_t kNobody = 0xffffffff;
const std::string kAccess(kAccessAclXattr), kDefault(kDefaultAclXattr);

template <typename T>
void append(std::string& bytes, T number) {
  for (size_t i = 0; i < sizeof number; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
}

std::string valueOf(const Acl& acl, uint32_t version = 2) {
  std::string value;
  append(value, version);
  for (auto& entry : acl)
    append(value, entry.tag), append(value, entry.permissions), append(value, entry.id);
  return value;
}

Acl acl(uint16_t owner, uint16_t group, uint16_t others) {
  return {{kUserObj, owner, kNobody}, {kGroupObj, group, kNobody}, {kOther, others, kNobody}};
}
Acl acl(uint16_t owner, uint16_t user7, uint16_t group, uint16_t mask, uint16_t others) {
  return {{kUserObj, owner, kNobody},
          {kUser, user7, 7},
          {kGroupObj, group, kNobody},
          {kMask, mask, kNobody},
          {kOther, others, kNobody}};
}

// An ACL as a person sees it; shares no code with what is tested.
struct ModelAcl {
  uint32_t owner = 0, group = 0, others = 0;
  std::map<uint32_t, uint32_t> users, groups;
  std::optional<uint32_t> mask;

  bool extended() const { return mask.has_value(); }
  uint32_t& middle() { return mask ? *mask : group; }
  uint32_t permissions() { return owner << 6 | middle() << 3 | others; }
  std::string value() const {
    Acl list{{kUserObj, static_cast<uint16_t>(owner), kNobody}};
    for (auto [id, bits] : users) list.push_back({kUser, static_cast<uint16_t>(bits), id});
    list.push_back({kGroupObj, static_cast<uint16_t>(group), kNobody});
    for (auto [id, bits] : groups) list.push_back({kGroup, static_cast<uint16_t>(bits), id});
    if (mask) list.push_back({kMask, static_cast<uint16_t>(*mask), kNobody});
    list.push_back({kOther, static_cast<uint16_t>(others), kNobody});
    return valueOf(list);
  }
};

struct ModelInode {
  InodeId inode;
  uint32_t mode = 0;  // with the type
  std::optional<ModelAcl> access, inherited;

  bool isDirectory() const { return S_ISDIR(mode); }
  void setAccess(ModelAcl given) {
    mode = (mode & ~0777u) | given.permissions();
    access = given.extended() ? std::optional(given) : std::nullopt;
  }
  void chmod(uint32_t to) {
    mode = (mode & S_IFMT) | to;
    if (!access) return;
    access->owner = to >> 6 & 7;
    access->middle() = to >> 3 & 7;
    access->others = to & 7;
  }
  ModelInode child(uint32_t asked, uint32_t umask) const {
    ModelInode made{.mode = asked};
    if (!inherited) {
      made.mode &= ~umask;
      return made;
    }
    auto given = *inherited;
    given.owner &= asked >> 6;
    given.middle() &= asked >> 3;
    given.others &= asked;
    made.setAccess(given);
    if (made.isDirectory()) made.inherited = inherited;
    return made;
  }
};

ModelAcl randomAcl(test::Random& random) {
  auto bits = [&] { return static_cast<uint32_t>(random.between(0, 7)); };
  ModelAcl made{.owner = bits(), .group = bits(), .others = bits()};
  for (uint64_t n = random.between(0, 2); n != 0; --n)
    made.users[static_cast<uint32_t>(random.between(0, 9))] = bits();
  for (uint64_t n = random.between(0, 2); n != 0; --n)
    made.groups[static_cast<uint32_t>(random.between(0, 9))] = bits();
  if (!made.users.empty() || !made.groups.empty() || random.chance(20)) made.mask = bits();
  return made;
}

template <typename StoreType>
void requireSame(Fixture<StoreType>& fs, const ModelInode& model) {
  auto attributes = fs.attributes(model.inode);
  REQUIRE((attributes.mode & 0177777) == model.mode);
  uint8_t acls = (model.access ? kHasAccessAcl : 0) | (model.inherited ? kHasDefaultAcl : 0);
  REQUIRE(attributes.acls == acls);
  auto view = fs.view();
  auto same = [&](const std::string& name, const std::optional<ModelAcl>& wanted) {
    auto value = getxattr(*view, model.inode, name);
    REQUIRE(value.ok() == wanted.has_value());
    if (wanted) REQUIRE(*value == wanted->value());
    if (!wanted) REQUIRE(value.error() == Errno(ENODATA));
  };
  same(kAccess, model.access);
  same(kDefault, model.inherited);
}

}  // namespace

TEST_CASE("an ACL is valid if its entries are complete and in order", "[mds]") {
  CHECK(decodeAcl(valueOf(acl(7, 5, 0))).ok());
  CHECK(decodeAcl(valueOf(acl(7, 6, 5, 4, 0))).ok());
  auto error = [](const Acl& entries) { return decodeAcl(valueOf(entries)).errnoOrZero(); };
  CHECK(error({}) == EINVAL);
  AclEntry owner{kUserObj, 7, kNobody}, user{kUser, 7, 1}, group{kGroupObj, 7, kNobody},
      named{kGroup, 7, 1}, mask{kMask, 7, kNobody}, others{kOther, 7, kNobody};
  CHECK(error({owner, group, mask, others}) == 0);
  CHECK(error({owner, user, user, group, named, named, mask, others}) == 0);  // as Linux
  CHECK(error({group, others}) == EINVAL);
  CHECK(error({owner, others}) == EINVAL);
  CHECK(error({owner, group}) == EINVAL);
  CHECK(error({owner, user, group, others}) == EINVAL);  // a mask is missing
  CHECK(error({owner, group, named, others}) == EINVAL);
  CHECK(error({owner, owner, group, others}) == EINVAL);
  CHECK(error({owner, group, group, others}) == EINVAL);
  CHECK(error({owner, group, mask, mask, others}) == EINVAL);
  CHECK(error({owner, group, others, others}) == EINVAL);
  CHECK(error({owner, group, user, mask, others}) == EINVAL);
  CHECK(error({owner, group, mask, named, others}) == EINVAL);
  CHECK(error({group, owner, others}) == EINVAL);
  CHECK(error({owner, group, others, mask}) == EINVAL);
  CHECK(error({owner, {kUser, 7, kNobody}, group, mask, others}) == EINVAL);
  CHECK(error({{kUserObj, 8, kNobody}, group, others}) == EINVAL);
  CHECK(error({owner, group, {0x40, 7, kNobody}, others}) == EINVAL);
  CHECK(error({owner, group, {0, 7, kNobody}, others}) == EINVAL);
}

TEST_CASE("what is not even an ACL is refused", "[mds]") {
  auto good = valueOf(acl(7, 6, 5, 4, 0));
  for (size_t size = 0; size < good.size(); ++size)
    CHECK(decodeAcl(good.substr(0, size)).errnoOrZero() == EINVAL);
  CHECK(decodeAcl(good + '\0').errnoOrZero() == EINVAL);
  CHECK(decodeAcl(valueOf(acl(7, 5, 0), 1)).errnoOrZero() == EOPNOTSUPP);
  Acl many = acl(7, 7, 7, 7, 7);
  many.insert(many.begin() + 1, (kAclBytesMax - 4) / 8 - many.size(), {kUser, 7, 7});
  CHECK(decodeAcl(valueOf(many)).ok());
  many.insert(many.begin() + 1, {kUser, 7, 7});
  CHECK(decodeAcl(valueOf(many)).errnoOrZero() == E2BIG);
}

TEST_CASE("an ACL comes back as it was, but for numbers of nobody", "[mds]") {
  auto full = acl(7, 6, 5, 4, 0);
  CHECK(encodeAcl(*decodeAcl(valueOf(full))) == valueOf(full));
  auto odd = full;
  odd[0].id = odd[3].id = 5;
  CHECK(*decodeAcl(valueOf(odd)) == full);
}

TEST_CASE("the mode shows owner, mask and others", "[mds]") {
  CHECK(permissionsOf(acl(7, 5, 1)) == 0751);
  CHECK(permissionsOf(acl(7, 1, 2, 5, 0)) == 0750);
  CHECK(isMinimal(acl(7, 5, 1)));
  CHECK(!isMinimal(acl(7, 1, 2, 5, 0)));
  auto minimal = acl(7, 5, 1), full = acl(7, 1, 2, 5, 0);
  setPermissions(minimal, 0640);
  setPermissions(full, 04640);
  CHECK(minimal == acl(6, 4, 0));
  CHECK(full == acl(6, 1, 2, 4, 0));
  CHECK(inheritedAcl(acl(7, 5, 5), 0640) == acl(6, 4, 0));
  CHECK(inheritedAcl(acl(7, 7, 7, 5, 5), 0666) == acl(6, 7, 7, 4, 4));
}

TEMPLATE_TEST_CASE("ACLs are for what they can be for", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto file = fs.file(kRootInode, "file");
  auto creation = fs.creation(kRootInode, "link", S_IFLNK | 0777);
  creation.target = "file";
  auto link = fs.run(creation).inode;
  auto value = valueOf(acl(7, 7, 7, 7, 0));
  CHECK(fs.error(SetXattrOp{.inode = file, .name = kDefault, .value = value}) == EACCES);
  CHECK(fs.error(SetXattrOp{.inode = link, .name = kAccess, .value = value}) == EOPNOTSUPP);
  CHECK(fs.error(SetXattrOp{.inode = link, .name = kDefault, .value = value}) == EOPNOTSUPP);
  CHECK(fs.error(RemoveXattrOp{link, kAccess}) == EOPNOTSUPP);
  CHECK(fs.error(SetXattrOp{.inode = file, .name = kAccess, .value = "acl"}) == EINVAL);
  auto before = fs.attributes(file);
  CHECK(fs.error(RemoveXattrOp{file, kDefault}) == 0);
  CHECK(fs.error(RemoveXattrOp{file, kAccess}) == 0);
  CHECK(fs.attributes(file) == before);
  CHECK(fs.error(SetXattrOp{.inode = file, .name = kAccess, .value = value}) == 0);
  CHECK(fs.attributes(file).ctime == fs.now);
  CHECK((fs.attributes(file).mode & 07777) == 0770);
  CHECK(*listxattr(*fs.view(), file) == std::vector<std::string>{kAccess});
  CHECK(fs.error(RemoveXattrOp{file, kAccess}) == 0);
  CHECK((fs.attributes(file).mode & 07777) == 0770);
  CHECK(problemsOf(*fs.view()).empty());
}

TEMPLATE_TEST_CASE("an access ACL takes set-group-ID where the caller is no member", "[mds]",
                   MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto file = fs.file(kRootInode, "file");
  auto setBy = [&](uint32_t uid, uint32_t gid, std::vector<uint32_t> groups) {
    fs.identity = {};
    fs.error(SetAttrOp{.inode = file, .mask = kSetGid, .gid = 50});
    fs.error(SetAttrOp{.inode = file, .mask = kSetMode, .mode = 02770});
    fs.identity = {.uid = uid, .gid = gid, .groups = std::move(groups)};
    CHECK(fs.error(SetXattrOp{file, kAccess, valueOf(acl(7, 7, 7, 7, 0))}) == 0);
    return fs.attributes(file).mode & 07777;
  };
  CHECK(setBy(0, 0, {}) == 02770);
  CHECK(setBy(9, 50, {}) == 02770);
  CHECK(setBy(9, 9, {8, 50}) == 02770);
  CHECK(setBy(9, 9, {8}) == 0770);
  fs.identity = {};
}

TEMPLATE_TEST_CASE("a new inode gets the umask or the default ACL", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto directory = fs.directory(kRootInode, "directory");
  int made = 0;
  auto create = [&](uint32_t mode) {
    auto op = fs.creation(directory, std::to_string(made++), mode);
    op.umask = 027;
    if (S_ISLNK(mode)) op.target = "x";
    return fs.attributes(fs.run(op).inode);
  };
  CHECK(create(S_IFREG | 06666).mode == (S_IFREG | 06640));
  CHECK(create(S_IFDIR | 01777).mode == (S_IFDIR | 01750));
  CHECK(create(S_IFIFO | 0666).mode == (S_IFIFO | 0640));
  CHECK(create(S_IFLNK | 0777).mode == (S_IFLNK | 0777));

  CHECK(fs.error(SetXattrOp{directory, kDefault, valueOf(acl(7, 6, 5, 7, 4))}) == 0);
  auto file = create(S_IFREG | 0666);
  CHECK(file.mode == (S_IFREG | 0664));
  CHECK(file.acls == kHasAccessAcl);
  CHECK(*getxattr(*fs.view(), file.inode, kAccess) == valueOf(acl(6, 6, 5, 6, 4)));
  auto sub = create(S_IFDIR | 01777);
  CHECK(sub.mode == (S_IFDIR | 01774));
  CHECK(sub.acls == (kHasAccessAcl | kHasDefaultAcl));
  CHECK(*getxattr(*fs.view(), sub.inode, kDefault) == valueOf(acl(7, 6, 5, 7, 4)));
  auto link = create(S_IFLNK | 0777);
  CHECK(link.mode == (S_IFLNK | 0777));
  CHECK(link.acls == 0);

  CHECK(fs.error(SetXattrOp{directory, kDefault, valueOf(acl(7, 5, 5))}) == 0);
  file = create(S_IFREG | 0666);
  CHECK(file.mode == (S_IFREG | 0644));
  CHECK(file.acls == 0);
  CHECK(problemsOf(*fs.view()).empty());
}

TEMPLATE_TEST_CASE("random changes of ACLs and modes are as the model's", "[mds]", MemStore,
                   LmdbStore) {
  auto seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  test::Random random(seed);
  Fixture<TestType> fs;
  std::vector<ModelInode> inodes{
      {.inode = fs.directory(kRootInode, "top"), .mode = S_IFDIR | 0755}};
  auto bits = [&](uint32_t most) { return static_cast<uint32_t>(random.between(0, most)); };
  for (int step = 0; step < 2000; ++step) {
    auto& some = inodes[random.between(0, inodes.size() - 1)];
    auto given = randomAcl(random);
    switch (random.between(0, 5)) {
      case 0:
        REQUIRE(fs.error(SetXattrOp{some.inode, kAccess, given.value()}) == 0);
        some.setAccess(given);
        break;
      case 1:
        REQUIRE(fs.error(SetXattrOp{some.inode, kDefault, given.value()}) ==
                (some.isDirectory() ? 0 : EACCES));
        if (some.isDirectory()) some.inherited = given;
        break;
      case 2: {
        bool access = random.chance(50);
        REQUIRE(fs.error(RemoveXattrOp{some.inode, access ? kAccess : kDefault}) == 0);
        (access ? some.access : some.inherited).reset();
        break;
      }
      case 3: {
        SetAttrOp op{.inode = some.inode, .mask = kSetMode, .mode = bits(07777)};
        REQUIRE(fs.error(op) == 0);
        some.chmod(op.mode);
        break;
      }
      default: {
        if (!some.isDirectory() || inodes.size() == 100) break;
        auto type = random.chance(50) ? S_IFDIR : S_IFREG;
        auto op = fs.creation(some.inode, std::to_string(step), type | bits(0777));
        op.umask = bits(0777);
        auto made = some.child(op.mode, op.umask);
        if (some.mode & S_ISGID && made.isDirectory()) made.mode |= S_ISGID;
        made.inode = fs.run(op).inode;
        requireSame(fs, made);
        inodes.push_back(made);
        continue;
      }
    }
    requireSame(fs, some);
  }
  for (auto& inode : inodes) requireSame(fs, inode);
  CHECK(problemsOf(*fs.view()).empty());
}

}  // namespace trainfs::mds
