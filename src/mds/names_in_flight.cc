#include "mds/names_in_flight.h"

namespace trainfs::mds {

namespace {

std::string keyOf(InodeId parent, std::string_view name) {
  std::string key(reinterpret_cast<const char*>(&parent.value), sizeof parent.value);
  return key.append(name);
}

template <typename Counts, typename Key>
void drop(Counts& counts, const Key& key) {
  auto found = counts.find(key);
  if (--found->second == 0) counts.erase(found);
}

}  // namespace

NamesInFlight::Hold::~Hold() {
  if (!counts_) return;
  for (auto& name : names_) drop(counts_->names, name);
  for (auto& inode : doomed_) drop(counts_->doomed, inode);
  if (!names_.empty() || !doomed_.empty()) counts_->changed.notify();
}

void NamesInFlight::Hold::name(InodeId parent, std::string_view name) {
  names_.push_back(keyOf(parent, name));
  ++counts_->names[names_.back()];
}

void NamesInFlight::Hold::doom(InodeId inode) {
  doomed_.push_back(inode);
  ++counts_->doomed[inode];
}

bool NamesInFlight::has(InodeId parent, std::string_view name) const {
  return counts_->names.contains(keyOf(parent, name));
}

}  // namespace trainfs::mds
