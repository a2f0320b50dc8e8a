#include "mds/names.h"

#include <kj/debug.h>

#include <optional>

#include "mds/inodes.h"

namespace trainfs::mds {
namespace {

// A page looks at no more inodes than this on the ways up: it is made on the event loop.
constexpr size_t kStepsPerPage = 16 * 1024;
static_assert(kPathBytesMax / 2 <= kStepsPerPage, "the longest path is not found");

constexpr NameCursor kAfterFirst{0, 1};  // the name in the record is done, no other one is

bool isFirst(const InodeRecord& record, const NamePlace& at) {
  return record.parent == at.parent && record.place == at.place.cookie();
}

void setFirst(InodeRecord& record, const NamePlace& at) {
  record.parent = at.parent;
  record.place = at.place.cookie();
}

std::string nameAt(const View& view, InodeId parent, uint64_t cookie) {
  auto prefix = entryPlaceKey(parent, EntryPlace::fromCookie(cookie));
  std::string name;
  view.scan(prefix, prefix, [&](std::string_view key, std::string_view) {
    name = parseEntryKey(key).name;
    return false;
  });
  KJ_REQUIRE(!name.empty(), "an inode's name is not in its directory", parent.value, cookie);
  return name;
}

// Finds the names of one page.
class NameFinder {
 public:
  NameFinder(const View& view, InodeId root) : view_(view), root_(root) {}

  bool full() const {
    return page_.names.size() >= kNamesPerPage || bytes_ >= kNamesPageBytesMax ||
           steps_ >= kStepsPerPage;
  }

  void add(InodeId parent, uint64_t place) {
    InodeName found{.parent = parent, .name = nameAt(view_, parent, place), .path = {}};
    auto path = pathOf(parent, "/" + found.name);
    if (!path) return;
    if (path->size() <= kPathBytesMax) found.path = *std::move(path);
    bytes_ += found.name.size() + found.path.size();
    page_.names.push_back(std::move(found));
  }

  NamesPage& page() { return page_; }

 private:
  // Nothing: not below the root that was asked for.
  std::optional<std::string> pathOf(InodeId directory, std::string path) {
    while (directory != root_ && path.size() <= kPathBytesMax) {
      if (directory == kRootInode) return std::nullopt;
      steps_++;
      auto record = findInode(view_, directory);
      KJ_REQUIRE(record.has_value(), "a directory without its parent", directory.value);
      path.insert(0, "/" + nameAt(view_, record->parent, record->place));
      directory = record->parent;
    }
    return path;
  }

  const View& view_;
  InodeId root_;
  NamesPage page_;
  size_t bytes_ = 0, steps_ = 0;
};

}  // namespace

void addName(Txn& txn, InodeRecord& record, std::string_view entryKey) {
  auto at = placeOfEntry(entryKey);
  if (record.parent == kNoInode)
    setFirst(record, at);
  else
    txn.put(linkKey(record.attributes.inode, at), {});
}

void dropName(Txn& txn, InodeRecord& record, std::string_view entryKey) {
  auto at = placeOfEntry(entryKey);
  if (!isFirst(record, at)) return txn.erase(linkKey(record.attributes.inode, at));
  record.parent = kNoInode;
  record.place = 0;
  if (record.isDirectory() || record.attributes.links < 2) return;
  auto prefix = linksPrefix(record.attributes.inode);
  std::string other;
  txn.scan(prefix, prefix, [&](std::string_view key, std::string_view) {
    other = key;
    return false;
  });
  KJ_REQUIRE(!other.empty(), "more links than names", record.attributes.inode.value);
  setFirst(record, placeOfLink(other));
  txn.erase(other);
}

void moveName(Txn& txn, InodeRecord& record, std::string_view fromKey, std::string_view toKey) {
  auto from = placeOfEntry(fromKey), to = placeOfEntry(toKey);
  if (isFirst(record, from)) return setFirst(record, to);
  txn.erase(linkKey(record.attributes.inode, from));
  txn.put(linkKey(record.attributes.inode, to), {});
}

Result<NamesPage> namesOf(const View& view, InodeId inode, InodeId root, NameCursor after) {
  auto record = loadInode(view, inode);
  if (!record) return record.error();
  if (record->attributes.links == 0) return Errno(ESTALE);
  NameFinder finder(view, root);
  auto& page = finder.page();
  if (inode == root) {
    page.names.push_back({.parent = kNoInode, .name = {}, .path = "/"});
    return std::move(page);
  }
  if (inode == kRootInode) return std::move(page);
  if (after == NameCursor{}) {
    finder.add(record->parent, record->place);
    after = kAfterFirst;
  }
  page.next = after;
  auto from = linkKey(inode, {{after.parent}, EntryPlace::fromCookie(after.place + 1)});
  view.scan(from, linksPrefix(inode), [&](std::string_view key, std::string_view) {
    if (finder.full()) return page.end = false;
    auto at = placeOfLink(key);
    finder.add(at.parent, at.place.cookie());
    page.next = {at.parent.value, at.place.cookie()};
    return true;
  });
  return std::move(page);
}

}  // namespace trainfs::mds
