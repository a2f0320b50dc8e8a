#include "fuse_client/inodes.h"

#include <sys/stat.h>

#include <algorithm>

namespace trainfs::client {

namespace {

std::shared_ptr<const Layout> withExisting(
    std::shared_ptr<const Layout> layout, const std::vector<std::pair<uint8_t, uint32_t>>& exists) {
  if (!layout || exists.empty()) return layout;
  auto merged = std::make_shared<Layout>(*layout);
  for (auto [component, stripe] : exists) {
    if (component >= merged->components.size()) continue;
    auto& flags = merged->components[component].exists;
    if (stripe < flags.size()) flags[stripe] = true;
  }
  return merged;
}

bool anyExists(const Layout& layout) {
  return std::any_of(layout.components.begin(), layout.components.end(),
                     [](const Component& component) {
                       return std::find(component.exists.begin(), component.exists.end(), true) !=
                              component.exists.end();
                     });
}

// Unless it is set, which is counted, a file only grows. The answer to a change is without what
// others have written and not reported; that to a question has it, and may come before or after.
uint64_t sizeKnowing(const Attributes& attributes, const Attributes& other) {
  bool same = attributes.settings == other.settings;
  return same ? std::max(attributes.sizeBytes, other.sizeBytes) : attributes.sizeBytes;
}

}  // namespace

void Unreported::add(uint64_t sentUnder, uint64_t end, Time now) {
  ++changes;
  if (sentUnder < settings) {
    if (end != 0) overtakenUpTo = changes;
    return;
  }
  if (sentUnder > settings) {
    if (endBytes != 0) overtakenUpTo = changes - 1;
    endBytes = 0;
    settings = sentUnder;
  }
  endBytes = std::max(endBytes, end);
  mtime = now;
}

void Unreported::noteReported(uint64_t upTo) {
  reported = std::max(reported, upTo);
  if (!any()) *this = {.changes = changes, .reported = reported};
}

void Unreported::noteSet(bool size, uint64_t now) {
  if (size) endBytes = 0;
  mtime = {};
  // Otherwise others have set it in between.
  if (endBytes == 0 || settings + 1 == now) settings = now;
}

bool Inode::overtaken() const {
  return unreported.overtaken() ||
         (unreported.endBytes != 0 && unreported.settings < attributes.settings);
}

Attributes Inode::withUnreported(Attributes result) const {
  bool current = unreported.settings >= result.settings;
  if (current) result.sizeBytes = std::max(result.sizeBytes, unreported.endBytes);
  if (unreported.mtime != Time{} && (current || unreported.mtime > result.ctime))
    result.mtime = result.ctime = unreported.mtime;
  // Not measured yet: as if there were no holes. Without blocks a file counts as one hole for some
  // archivers.
  if (result.usedBytes == 0 && layout && anyExists(*layout))
    result.usedBytes =
        (result.sizeBytes + kAllocationBytes - 1) / kAllocationBytes * kAllocationBytes;
  return result;
}

Forgotten::Past Inode::takePast() {
  if (known && attributes.links == 0) return {};
  return {std::move(unsynced), losses.untold(), strayBytes};
}

InodePtr Inodes::find(InodeId id) {
  auto& shard = shardOf(id);
  std::lock_guard lock(shard.mutex);
  auto found = shard.inodes.find(id);
  return found == shard.inodes.end() ? nullptr : found->second;
}

InodePtr Inodes::obtain(InodeId id) {
  auto& shard = shardOf(id);
  std::lock_guard lock(shard.mutex);
  auto& slot = shard.inodes[id];
  if (slot) return slot;
  slot = std::make_shared<Inode>(id);
  slot->changedAt = shard.droppedAt;  // an answer older than that could be about its past
  auto past = forgotten_.take(id);
  slot->unsynced = std::move(past.unsynced);
  slot->strayBytes = past.strayBytes;
  if (past.lossUntold) slot->losses.add();
  return slot;
}

Inodes::Taken Inodes::take(Inode& inode, const Node& node, Instant askedAt) {
  std::lock_guard lock(inode.mutex);
  if (inode.changedAt > askedAt) {
    inode.attributes.sizeBytes = sizeKnowing(inode.attributes, node.attributes);
    if (inode.known) return {inode.present(), !inode.overtaken()};
    return {inode.withUnreported(node.attributes), false};
  }
  adopt(inode, node);
  return {inode.present(), !inode.overtaken()};
}

void Inodes::adopt(Inode& inode, const Node& node) {
  inode.attributes = node.attributes;
  inode.layout = withExisting(node.layout, inode.unreported.exists);
  inode.known = true;
  if (node.attributes.links < 2 || S_ISDIR(node.attributes.mode)) return;
  std::lock_guard lock(hardLinkedMutex_);
  hardLinked_.insert(inode.id);
}

Inodes::Taken Inodes::takeChange(Inode& inode, const Node& node) {
  std::lock_guard lock(inode.mutex);
  inode.changedAt = tick();
  // Answers to two changes may arrive the other way round; the MDS's clock tells.
  if (!inode.known || node.attributes.ctime >= inode.attributes.ctime) {
    auto sizeBytes = sizeKnowing(node.attributes, inode.attributes);
    adopt(inode, node);
    inode.attributes.sizeBytes = sizeBytes;
  }
  return {inode.present(), true};
}

void Inodes::takeLayout(Inode& inode, const Node& node) {
  std::lock_guard lock(inode.mutex);
  inode.layout = withExisting(node.layout, inode.unreported.exists);
}

void Inodes::forgetState(InodeId id) {
  auto inode = find(id);
  if (!inode) return;
  std::lock_guard lock(inode->mutex);
  inode->changedAt = tick();
  inode->known = false;
}

void Inodes::forgetAll() {
  for (auto& inode : all()) {
    std::lock_guard lock(inode->mutex);
    inode->changedAt = tick();
    inode->known = false;
    inode->absentXattrs = 0;
  }
}

void Inodes::forgetHardLinked() {
  std::unordered_set<InodeId> linked;
  {
    std::lock_guard lock(hardLinkedMutex_);
    linked.swap(hardLinked_);
  }
  for (auto id : linked) forgetState(id);
}

void Inodes::setParent(Inode& inode, InodeId parent) {
  std::lock_guard lock(inode.mutex);
  inode.parent = parent;
}

bool Inodes::isOpen(InodeId id) {
  std::lock_guard lock(openMutex_);
  return open_.contains(id);
}

void Inodes::addLookup(const InodePtr& inode) {
  std::lock_guard lock(inode->mutex);
  ++inode->lookups;
}

void Inodes::forget(InodeId id, uint64_t lookups) {
  auto inode = find(id);
  if (!inode) return;
  {
    std::lock_guard lock(inode->mutex);
    inode->lookups -= std::min(lookups, inode->lookups);
    if (inode->lookups != 0) return;
  }
  inode.reset();
  dropIfUnused(id);
}

// The root of the mount stays: the kernel never looks it up, but remembers its attributes.
void Inodes::dropIfUnused(InodeId id) {
  if (id == root_) return;
  auto& shard = shardOf(id);
  InodePtr dropped;  // destroyed after the locks are gone
  std::lock_guard lock(shard.mutex);
  auto found = shard.inodes.find(id);
  if (found == shard.inodes.end()) return;
  auto& inode = *found->second;
  {
    std::lock_guard inner(inode.mutex);
    if (inode.lookups != 0 || inode.handles != 0 || inode.unreported.any()) return;
    // An operation that still runs, as the write of a caller that was killed, may yet change it;
    // and who meets it again meanwhile must meet the same one. The map's reference is the only way
    // to another one, so if it is the last it stays the last.
    if (found->second.use_count() > 1) {
      std::lock_guard idleLock(idleSoonMutex_);
      idleSoon_.insert(id);
      return;
    }
    shard.droppedAt = std::max(shard.droppedAt, inode.changedAt);
    forgotten_.keep(id, inode.takePast());
  }
  dropped = std::move(found->second);
  shard.inodes.erase(found);
}

void Inodes::dropIdle() {
  std::unordered_set<InodeId> ids;
  {
    std::lock_guard lock(idleSoonMutex_);
    ids.swap(idleSoon_);
  }
  for (auto id : ids) dropIfUnused(id);
}

void Inodes::addHandle(const InodePtr& inode, bool writing) {
  // Both locks, in this order, so that an inode is in open_ exactly while it has handles.
  std::lock_guard openLock(openMutex_);
  std::lock_guard lock(inode->mutex);
  if (inode->handles++ == 0) open_[inode->id] = inode;
  if (writing) ++inode->writers;
}

Inodes::Left Inodes::dropHandle(const InodePtr& inode, bool writing) {
  Left left;
  {
    std::lock_guard openLock(openMutex_);
    std::lock_guard lock(inode->mutex);
    left.lastWriter = writing && --inode->writers == 0;
    left.last = --inode->handles == 0;
    if (left.last) open_.erase(inode->id);
  }
  if (left.last) dropIfUnused(inode->id);
  return left;
}

std::vector<OpenFile> Inodes::openFiles(MdsEvents::Told told) {
  std::vector<OpenFile> files;
  for (auto& inode : all()) {
    std::lock_guard lock(inode->mutex);
    if (S_ISDIR(inode->attributes.mode)) continue;
    // Also while a last report is to come, which says that nobody writes any more.
    bool writing = inode->writers != 0 ||
                   (inode->toldWriting && (inode->unreported.any() || inode->handles != 0));
    bool open = writing || inode->handles != 0;
    if (open) files.push_back({inode->id, writing});
    inode->toldOpen = open || (told == MdsEvents::Told::kMore && inode->toldOpen);
    if (told == MdsEvents::Told::kAll) inode->toldWriting = writing;
  }
  return files;
}

std::optional<std::vector<InodeId>> Inodes::openInodes(size_t most) {
  std::lock_guard lock(openMutex_);
  if (open_.size() > most) return std::nullopt;
  std::vector<InodeId> ids;
  ids.reserve(open_.size());
  for (auto& [id, inode] : open_) ids.push_back(id);
  return ids;
}

std::vector<InodePtr> Inodes::all() {
  std::vector<InodePtr> result;
  for (auto& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    for (auto& [id, inode] : shard.inodes) result.push_back(inode);
  }
  return result;
}

Inodes::Figures Inodes::figures() {
  Figures figures;
  for (auto& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    figures.known += shard.inodes.size();
  }
  {
    std::lock_guard lock(openMutex_);
    figures.open = open_.size();
  }
  std::lock_guard lock(unreportedMutex_);
  figures.unreported = unreported_.size();
  return figures;
}

void Inodes::noteUnreported(const InodePtr& inode) {
  std::lock_guard lock(unreportedMutex_);
  unreported_.emplace(inode->id, inode);
}

std::vector<InodePtr> Inodes::unreported() {
  std::vector<InodePtr> result;
  std::vector<InodeId> clean;
  {
    std::lock_guard lock(unreportedMutex_);
    for (auto& [id, inode] : unreported_) {
      std::lock_guard inner(inode->mutex);
      if (inode->unreported.any())
        result.push_back(inode);
      else
        clean.push_back(id);
    }
    for (auto id : clean) unreported_.erase(id);
  }
  for (auto id : clean) dropIfUnused(id);
  return result;
}

}  // namespace trainfs::client
