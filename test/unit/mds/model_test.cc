// Random commands against the state machine and the reference model: same results, same tree, a
// sound store. TRAINFS_SEED replays a run.
#include <algorithm>
#include <random>

#include "fixture.h"
#include "lib/seed.h"
#include "mds/changelog.h"
#include "mds/names.h"
#include "reference_model.h"
#include "store_check.h"

namespace trainfs::mds {
namespace {

// Few names, directories and sessions, so that operations meet each other.
class CommandSource {
 public:
  // Chooses mostly among what the model has.
  CommandSource(uint64_t seed, const ReferenceModel& model) : random_(seed), model_(model) {}

  Command next() {
    Command command;
    command.now = {static_cast<int64_t>(2000 + count_++), 0};
    command.op = operation();
    if (of(3) != 0) command.session = session();
    // What marks a file, or lets it go, is a session's.
    if (std::holds_alternative<OpenWriteOp>(command.op) ||
        std::holds_alternative<ReleaseOp>(command.op))
      command.session = session();
    if (auto* create = std::get_if<CreateOp>(&command.op))
      create->writing &= command.session.value != 0;
    return command;
  }

 private:
  uint64_t of(uint64_t limit) {
    return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random_);
  }
  bool chance(uint64_t one_in) { return of(one_in) == 0; }
  std::string name() { return std::string(1, static_cast<char>('a' + of(6))); }
  SessionId session() {
    if (model_.sessions().empty() || chance(20)) return {1 + of(100)};
    return *std::next(model_.sessions().begin(), of(model_.sessions().size()));
  }
  InodeId inode() {
    if (chance(20)) return {of(nextInode_ + 1)};  // gone, or never there
    return std::next(model_.nodes().begin(), of(model_.nodes().size()))->first;
  }
  InodeId directory() {
    for (int attempt = 0; attempt < 4; attempt++)
      if (auto chosen = inode();
          model_.nodes().contains(chosen) && S_ISDIR(model_.nodes().at(chosen).mode))
        return chosen;
    return inode();
  }
  std::vector<std::pair<InodeId, SessionId>> holders() {
    std::vector<std::pair<InodeId, SessionId>> all;
    for (auto& [held, node] : model_.nodes())
      for (uint64_t times = of(4); times > 1; times--) all.emplace_back(held, session());
    return all;
  }

  CreateOp create() {
    static constexpr uint32_t kTypes[] = {S_IFREG, S_IFREG, S_IFDIR, S_IFDIR,
                                          S_IFDIR, S_IFLNK, S_IFIFO};
    CreateOp op{
        .parent = directory(), .name = name(), .mode = kTypes[of(std::size(kTypes))] | 0644u};
    if (S_ISREG(op.mode)) op.layout = placedLayout();
    if (S_ISLNK(op.mode)) op.target = "target" + name();
    op.exclusive = !chance(3);
    op.writing = chance(2);
    op.unnamed = S_ISREG(op.mode) && chance(4);
    op.linkable = chance(2);
    op.newInode = {nextInode_++};
    return op;
  }

  RenameOp rename() {
    RenameOp op{.parent = directory(), .name = name(), .newParent = directory(), .newName = name()};
    op.noReplace = chance(5);
    op.exchange = chance(4);
    op.holders = holders();
    return op;
  }

  Operation operation() {
    switch (of(20)) {
      default:
        return create();
      case 5:
        return LinkOp{inode(), directory(), name()};
      case 6:
      case 7:
        return UnlinkOp{directory(), name(), holders()};
      case 8:
      case 9:
        return RmdirOp{directory(), name(), holders()};
      case 10:
      case 11:
      case 12:
        return rename();
      case 13:
        return SetAttrOp{.inode = inode(),
                         .mask = chance(2) ? kSetMode : kSetSize,
                         .mode = static_cast<uint32_t>(of(0777)),
                         .sizeBytes = of(100000)};
      case 14:
        return SetXattrOp{inode(), "user." + name(), name(), chance(3), chance(3)};
      case 15:
        return RemoveXattrOp{inode(), "user." + name()};
      case 16:
        return OpenWriteOp{inode()};
      case 17:
        return ReportOp{.inode = inode(),
                        .sizeBytes = of(100000),
                        .stillWriting = chance(2),
                        .settings = of(3),
                        .overtaken = chance(8)};
      case 18:
        return ReleaseOp{inode()};
      case 19:
        if (model_.sessions().size() > 4) return EndSessionOp{session()};
        return OpenSessionOp{"model"};
    }
  }

  std::mt19937_64 random_;
  uint64_t count_ = 0;
  uint64_t nextInode_ = 2;
  const ReferenceModel& model_;
};

// (parent, name) of every inode, from the entries of the model.
using Names = std::map<InodeId, std::set<std::pair<InodeId, std::string>>>;
Names namesIn(const ReferenceModel& model) {
  Names names;
  for (auto& [directory, node] : model.nodes())
    for (auto& [name, inode] : node.entries) names[inode].emplace(directory, name);
  return names;
}

void requireSameNames(const View& view, InodeId inode, const Names& expected) {
  auto page = namesOf(view, inode, kRootInode, {});
  auto known = expected.find(inode);
  if (known == expected.end()) {
    REQUIRE(page.errnoOrZero() == (inode == kRootInode ? 0 : ESTALE));
    return;
  }
  REQUIRE(page.ok());
  REQUIRE(page->end);
  std::set<std::pair<InodeId, std::string>> found;
  for (auto& name : page->names) {
    found.emplace(name.parent, name.name);
    REQUIRE(name.path.ends_with("/" + name.name));
  }
  REQUIRE(found == known->second);
}

void requireSameNode(const View& view, InodeId inode, const ReferenceModel& model) {
  const auto& expected = model.nodes().at(inode);
  auto node = loadNode(view, inode);
  REQUIRE(node.ok());
  REQUIRE(node->attributes.mode == expected.mode);
  REQUIRE(node->attributes.links == model.linksOf(inode));
  if (!S_ISDIR(expected.mode)) REQUIRE(node->attributes.sizeBytes == expected.sizeBytes);
  if (S_ISLNK(expected.mode)) REQUIRE(*readlink(view, inode) == expected.target);
  std::map<std::string, std::string> xattrs;
  auto names = listxattr(view, inode);
  for (auto& name : *names) xattrs[name] = *getxattr(view, inode, name);
  REQUIRE(xattrs == expected.xattrs);
  auto writers = writersOf(view, inode);
  REQUIRE(std::set(writers.begin(), writers.end()) == expected.writers);
  if (!S_ISDIR(expected.mode)) return;
  std::map<std::string, InodeId> entries;
  auto page = readdir(view, inode, 0, 1000);
  for (auto& entry : page->entries) entries[entry.name] = entry.inode;
  REQUIRE(entries == expected.entries);
}

void requireSameTree(const View& view, const ReferenceModel& model) {
  REQUIRE(problemsOf(view) == std::vector<std::string>{});
  auto names = namesIn(model);
  for (auto& [inode, node] : model.nodes()) {
    requireSameNode(view, inode, model);
    requireSameNames(view, inode, names);
  }
  size_t inodes = 0;
  view.scan("I", "I", [&](std::string_view, std::string_view) { return ++inodes; });
  REQUIRE(inodes == model.nodes().size());
}

// Knows the names there are from the records of the changelog alone.
class Follower {
 public:
  void follow(const View& view) {
    for (auto changes = readChangelog(view, next_, 100); !changes.empty();
         changes = readChangelog(view, next_, 100)) {
      for (auto& change : changes) {
        REQUIRE(change.index == next_++);
        take(change);
      }
    }
  }
  uint64_t seen() const { return next_ - 1; }
  const std::map<std::pair<InodeId, std::string>, InodeId>& names() const { return names_; }

 private:
  void take(const ChangeRecord& change) {
    std::pair name(change.parent, change.name);
    switch (change.type) {
      case ChangeType::kCreate:
      case ChangeType::kMkdir:
      case ChangeType::kHardlink:
      case ChangeType::kSymlink:
      case ChangeType::kMknod:
        REQUIRE(names_.emplace(name, change.target).second);
        break;
      case ChangeType::kUnlink:
      case ChangeType::kRmdir: {
        REQUIRE(names_.contains(name));
        REQUIRE(names_[name] == change.target);
        names_.erase(name);
        REQUIRE(change.lastLink == !named(change.target));
        break;
      }
      case ChangeType::kRename:
        rename(change, name);
        break;
      default:
        REQUIRE(change.name.empty());
    }
  }
  void rename(const ChangeRecord& change, const std::pair<InodeId, std::string>& name) {
    // The other half of an exchange: the first has put something else where it comes from.
    std::pair from(change.sourceParent, change.sourceName);
    if (auto old = names_.find(from); old != names_.end() && old->second == change.source)
      names_.erase(old);
    bool replaces = change.target != kNoInode;
    if (replaces) REQUIRE(names_[name] == change.target);
    names_[name] = change.source;
    if (replaces) REQUIRE(change.lastLink == !named(change.target));
  }
  bool named(InodeId inode) const {
    return std::any_of(names_.begin(), names_.end(),
                       [&](auto& entry) { return entry.second == inode; });
  }

  uint64_t next_ = 1;
  std::map<std::pair<InodeId, std::string>, InodeId> names_;
};

}  // namespace

TEST_CASE("who follows the changelog knows every name", "[mds][random][changelog]") {
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  Fixture<MemStore> fs;
  auto user = static_cast<uint32_t>(fs.run(RegisterChangelogOp{"follower"}).value);
  ReferenceModel model;
  CommandSource source(seed, model);
  Follower follower;
  for (int i = 0; i < 6000; i++) {
    auto command = source.next();
    REQUIRE(fs.applyAll(command).error == model.apply(command.op, command.session));
    if (i % 50 != 0) continue;
    follower.follow(*fs.view());
    std::map<std::pair<InodeId, std::string>, InodeId> expected;
    for (auto& [directory, node] : model.nodes())
      for (auto& [name, inode] : node.entries) expected[{directory, name}] = inode;
    REQUIRE(follower.names() == expected);
    REQUIRE(fs.error(ClearChangelogOp{user, follower.seen()}) == 0);
    while (fs.run(TrimChangelogOp{}).value != 0) continue;
    REQUIRE(readChangelog(*fs.view(), 0, 1).empty());
  }
  CHECK(follower.seen() > 1000);
}

TEMPLATE_TEST_CASE("random commands do what POSIX says", "[mds][random]", MemStore, LmdbStore) {
  constexpr int kCommands = 8000;
  constexpr int kPerTransaction = 16;
  constexpr int kPerCheck = 64;
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  Fixture<TestType> fs;
  ReferenceModel model;
  CommandSource source(seed, model);
  int succeeded = 0;
  for (int i = 0; i < kCommands;) {
    auto txn = fs.store.begin();
    for (int end = i + kPerTransaction; i < end; i++) {
      auto command = source.next();
      INFO("command " << i << ", operation " << command.op.index());
      int expected = model.apply(command.op, command.session);
      auto outcome = apply(command, *txn);
      REQUIRE(outcome.error == expected);
      succeeded += outcome.error == 0;
    }
    txn->commit();
    if (i % kPerCheck == 0) requireSameTree(*fs.view(), model);
  }
  CHECK(succeeded > kCommands / 5);
}

TEST_CASE("the same commands give the same bytes in every store", "[mds][random]") {
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  Fixture<MemStore> memory;
  Fixture<LmdbStore> lmdb;
  ReferenceModel model;
  CommandSource source(seed, model);
  auto lmdbTxn = lmdb.store.begin();
  for (int i = 0; i < 4000; i++) {
    auto command = source.next();
    command.slot = static_cast<uint16_t>(i % 3);
    command.sequence = i;
    model.apply(command.op, command.session);
    auto outcome = memory.applyAll(command);  // one transaction each; one for all on LMDB
    REQUIRE(apply(command, *lmdbTxn) == outcome);
  }
  lmdbTxn->commit();
  CHECK(memory.content() == lmdb.content());
}

TEMPLATE_TEST_CASE("a failed command changes nothing", "[mds][random]", MemStore) {
  uint64_t seed = test::testSeed();
  INFO("replay with TRAINFS_SEED=" << seed);
  Fixture<TestType> fs;
  REQUIRE(fs.error(RegisterChangelogOp{}) == 0);
  ReferenceModel model;
  CommandSource source(seed, model);
  for (int i = 0; i < 3000; i++) {
    auto command = source.next();
    auto before = fs.content();
    model.apply(command.op, command.session);
    auto outcome = fs.applyAll(command);
    INFO("command " << i << ", operation " << command.op.index());
    if (outcome.error != 0) REQUIRE(fs.content() == before);
  }
}

}  // namespace trainfs::mds
