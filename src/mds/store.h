// What the metadata code needs of a key-value store: ordered byte keys, snapshots, one writer.
// Implemented by lmdb_store (the only file that knows LMDB) and test/lib/mem_store.
#pragma once

#include <kj/exception.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace trainfs::mds {

// A consistent view. Used by one thread at a time. Views returned stay valid until the view's next
// change (Txn) or its end (snapshot).
class View {
 public:
  virtual ~View() = default;
  virtual std::optional<std::string_view> get(std::string_view key) const = 0;
  // Visits keys >= from in order while they start with `prefix` and `visit` returns true. `visit`
  // must not change the store: collect, then change.
  virtual void scan(
      std::string_view from, std::string_view prefix,
      const std::function<bool(std::string_view key, std::string_view value)>& visit) const = 0;
};

// The write transaction. Dropped without commit() it leaves no trace.
class Txn : public View {
 public:
  virtual void put(std::string_view key, std::string_view value) = 0;
  virtual void erase(std::string_view key) = 0;  // a missing key is fine
  // Seen by snapshots taken from now on. Whether it is durable is the store's matter. Throws
  // kj::Exception when the disk refuses: of type OVERLOADED when it is full, and nothing has
  // changed then; any other, and the store is unusable.
  virtual void commit() = 0;
};

// What may still be written.
enum class Room {
  kPlenty,
  kReserve,  // changes that free something, or change little
  kNone,
};

// The store is done for: what it answers does not follow from what is in it.
class StoreBroken final : public kj::Exception {
 public:
  explicit StoreBroken(kj::Exception&& what) : kj::Exception(kj::mv(what)) {}
};

class Store {
 public:
  virtual ~Store() = default;
  virtual std::unique_ptr<View> snapshot() = 0;  // any thread
  virtual std::unique_ptr<Txn> begin() = 0;      // one writer at a time, always the same thread
  // The writer asks before it takes on more.
  virtual Room makeRoom() { return Room::kPlenty; }
};

}  // namespace trainfs::mds
