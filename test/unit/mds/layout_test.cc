#include "fixture.h"
#include "striping/layout_text.h"

namespace trainfs::mds {
namespace {

Layout striped(uint32_t stripes) {
  Layout layout = striping::defaultLayout();
  layout.components[0].stripeCount = stripes;
  return layout;
}

Layout placed(uint32_t stripes, uint32_t firstChain) {
  Layout layout = striped(stripes);
  std::vector<ChainId> chains;
  for (uint32_t i = 0; i < stripes; i++) chains.push_back({firstChain + i});
  striping::setChains(layout.components[0], chains);
  return layout;
}

}  // namespace

TEMPLATE_TEST_CASE("a directory's default layout is inherited", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto dir = fs.directory(kRootInode, "dir");
  auto getText = [&](InodeId inode) { return getxattr(*fs.view(), inode, kLayoutXattr); };
  CHECK(inheritedLayout(*fs.view(), dir) == striping::defaultLayout());
  CHECK(getText(dir).errnoOrZero() == ENODATA);
  REQUIRE(fs.error(SetLayoutOp{kRootInode, striped(2)}) == 0);
  CHECK(inheritedLayout(*fs.view(), dir) == striped(2));
  CHECK(getText(dir).errnoOrZero() == ENODATA);
  REQUIRE(fs.error(SetLayoutOp{dir, striped(3)}) == 0);
  CHECK(fs.attributes(dir).ctime == fs.now);
  CHECK(inheritedLayout(*fs.view(), dir) == striped(3));
  CHECK(*getText(dir) == striping::formatLayout(striped(3)));
  CHECK(listxattr(*fs.view(), dir)->empty());
  // A new directory takes it along, but not root's.
  auto sub = fs.directory(dir, "sub");
  CHECK(loadNode(*fs.view(), sub)->layout == striped(3));
  auto plain = fs.directory(kRootInode, "plain");
  CHECK(loadNode(*fs.view(), plain)->layout == Layout{});
  REQUIRE(fs.error(SetLayoutOp{dir, {}}) == 0);
  CHECK(inheritedLayout(*fs.view(), dir) == striped(2));
  CHECK(inheritedLayout(*fs.view(), sub) == striped(3));
  CHECK(fs.error(SetLayoutOp{dir, {}}) == ENODATA);
  // A default names no objects, and a bad one is refused.
  REQUIRE(fs.error(SetLayoutOp{dir, placed(2, 0)}) == 0);
  CHECK(loadNode(*fs.view(), dir)->layout == striped(2));
  auto bad = striped(1);
  bad.components[0].stripeBytes = 1;
  CHECK(fs.error(SetLayoutOp{dir, bad}) == EINVAL);
  CHECK(fs.error(SetLayoutOp{{999}, striped(1)}) == ESTALE);
  CHECK(fs.error(SetLayoutOp{fs.make(kRootInode, "fifo", S_IFIFO | 0644), striped(1)}) == EINVAL);
}

TEMPLATE_TEST_CASE("a file's layout can change while it has no data", "[mds]", MemStore,
                   LmdbStore) {
  Fixture<TestType> fs;
  auto session = fs.session(), stranger = fs.session();
  auto file = fs.file(kRootInode, "file");
  CHECK(*getxattr(*fs.view(), file, kLayoutXattr) == striping::formatLayout(placedLayout()));
  REQUIRE(fs.error(SetLayoutOp{file, placed(2, 5)}, session) == 0);
  auto expected = placed(2, 5);
  expected.generation = 2;
  CHECK(loadNode(*fs.view(), file)->layout == expected);
  // What the old layout named may exist on an OST, unreported.
  REQUIRE(garbage(*fs.view(), 10).size() == 1);
  CHECK(garbage(*fs.view(), 10)[0].layout == placedLayout());
  CHECK(fs.error(SetLayoutOp{file, {}}) == EINVAL);

  REQUIRE(fs.error(OpenWriteOp{file}, session) == 0);
  CHECK(fs.error(SetLayoutOp{file, placed(1, 0)}, stranger) == EBUSY);
  CHECK(fs.error(SetLayoutOp{file, placed(3, 0)}, session) == 0);
  REQUIRE(fs.error(ReportOp{.inode = file, .exists = {{0, 2}}}, session) == 0);
  CHECK(fs.error(SetLayoutOp{file, placed(1, 0)}, session) == EEXIST);
  auto grown = fs.file(kRootInode, "grown");
  REQUIRE(fs.error(SetAttrOp{.inode = grown, .mask = kSetSize, .sizeBytes = 1}) == 0);
  CHECK(fs.error(SetLayoutOp{grown, placed(1, 0)}) == EEXIST);
  // A layout that never had chains has no objects either: the generation stays.
  auto unplaced = fs.creation(kRootInode, "unplaced", S_IFREG | 0644);
  unplaced.layout = striped(1);
  auto inode = fs.run(unplaced).inode;
  REQUIRE(fs.error(SetLayoutOp{inode, placed(2, 0)}) == 0);
  CHECK(loadNode(*fs.view(), inode)->layout == placed(2, 0));
}

TEMPLATE_TEST_CASE("instantiate gives a component its chains once", "[mds]", MemStore, LmdbStore) {
  Fixture<TestType> fs;
  auto session = fs.session();
  auto op = fs.creation(kRootInode, "file", S_IFREG | 0644);
  op.layout = striped(kStripeCountAll);
  auto file = fs.run(op).inode;
  auto dir = fs.directory(kRootInode, "dir");
  auto before = fs.content();
  CHECK(fs.error(InstantiateOp{file, 1, {{0}}}, session) == EINVAL);
  CHECK(fs.error(InstantiateOp{file, 0, {}}, session) == EINVAL);
  CHECK(fs.error(InstantiateOp{dir, 0, {{0}}}, session) == EISDIR);
  CHECK(fs.error(InstantiateOp{{999}, 0, {{0}}}, session) == ESTALE);
  CHECK(fs.content() == before);
  CHECK(fs.run(InstantiateOp{file, 0, {{3}, {4}}}, session) == Outcome{.inode = file});
  CHECK(loadNode(*fs.view(), file)->layout == placed(2, 3));
  CHECK(fs.run(InstantiateOp{file, 0, {{7}}}, session) == Outcome{.inode = file});
  CHECK(loadNode(*fs.view(), file)->layout == placed(2, 3));
}

}  // namespace trainfs::mds
