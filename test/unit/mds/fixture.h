// A formatted MDT on either store, and short names for what tests do with it.
#pragma once

#include <sys/stat.h>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "lib/mem_store.h"
#include "mds/lmdb_store.h"
#include "mds/namespace.h"
#include "mds/state_machine.h"
#include "striping/placement.h"

namespace trainfs::mds {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string path = (std::filesystem::temp_directory_path() / "trainfs-mds-XXXXXX").string();
    REQUIRE(mkdtemp(path.data()) != nullptr);
    path_ = path;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

template <typename StoreType>
struct StoreHome;
template <>
struct StoreHome<MemStore> {
  std::unique_ptr<MemStore> store = std::make_unique<MemStore>();
};
template <>
struct StoreHome<LmdbStore> {
  TemporaryDirectory directory;
  std::unique_ptr<LmdbStore> store =
      LmdbStore::open(directory.path(), {.mapBytes = 2 * kGiB, .create = true});
};

// Every key and value, for comparing whole stores.
inline MemStore::Map contentOf(const View& view) {
  MemStore::Map content;
  view.scan("", "", [&](std::string_view key, std::string_view value) {
    content.emplace(key, value);
    return true;
  });
  return content;
}

inline Layout placedLayout() {
  return *striping::place(
      striping::defaultLayout(),
      {{.index = 0, .active = true, .totalBytes = kGiB, .availableBytes = kGiB},
       {.index = 1, .active = true, .totalBytes = kGiB, .availableBytes = kGiB}},
      0);
}

template <typename StoreType>
struct Fixture {
  StoreHome<StoreType> home;
  Store& store = *home.store;
  Identity identity;
  Time now{1000, 0};

  Fixture() {
    auto txn = store.begin();
    format(*txn, "trainfs", 0, now);
    txn->commit();
  }

  // Each command has its own time, as the leader's clock gives it.
  Command command(Operation op, SessionId session = {}) {
    now.seconds++;
    return {.session = session, .identity = identity, .now = now, .op = std::move(op)};
  }
  Outcome applyAll(const Command& command) {
    auto txn = store.begin();
    auto outcome = apply(command, *txn);
    txn->commit();
    return outcome;
  }
  Outcome run(Operation op, SessionId session = {}) {
    return applyAll(command(std::move(op), session));
  }
  int error(Operation op, SessionId session = {}) { return run(std::move(op), session).error; }
  std::unique_ptr<View> view() { return store.snapshot(); }

  CreateOp creation(InodeId parent, std::string name, uint32_t mode) {
    CreateOp op{.parent = parent, .name = std::move(name), .mode = mode};
    op.newInode = nextInode(*view());
    if (S_ISREG(mode)) op.layout = placedLayout();
    return op;
  }
  // These must succeed.
  InodeId make(InodeId parent, std::string name, uint32_t mode) {
    auto outcome = run(creation(parent, std::move(name), mode));
    REQUIRE(outcome.error == 0);
    return outcome.inode;
  }
  InodeId file(InodeId parent, std::string name) {
    return make(parent, std::move(name), S_IFREG | 0644);
  }
  InodeId directory(InodeId parent, std::string name) {
    return make(parent, std::move(name), S_IFDIR | 0755);
  }
  SessionId session() {
    auto outcome = run(OpenSessionOp{"test"});
    REQUIRE(outcome.error == 0);
    return {outcome.value};
  }

  Attributes attributes(InodeId inode) {
    auto node = loadNode(*view(), inode);
    REQUIRE(node.ok());
    return node->attributes;
  }
  bool exists(InodeId inode) { return loadNode(*view(), inode).ok(); }
  int lookupError(InodeId parent, std::string_view name) {
    return lookup(*view(), parent, name).errnoOrZero();
  }
  InodeId at(InodeId parent, std::string_view name) {
    auto node = lookup(*view(), parent, name);
    return node ? node->attributes.inode : kNoInode;
  }
  MemStore::Map content() { return contentOf(*view()); }
};

}  // namespace trainfs::mds
