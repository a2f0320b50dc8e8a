#include "mem_store.h"

namespace trainfs::mds {

using Visit = std::function<bool(std::string_view key, std::string_view value)>;

class MemSnapshot final : public View {
 public:
  explicit MemSnapshot(MemStore& store) : store_(store) {
    std::lock_guard lock(store_.mutex_);
    map_ = store_.map_;
  }
  ~MemSnapshot() override {
    std::lock_guard lock(store_.mutex_);
    map_.reset();
  }

  std::optional<std::string_view> get(std::string_view key) const override {
    auto found = map_->find(key);
    if (found == map_->end()) return std::nullopt;
    return found->second;
  }
  void scan(std::string_view from, std::string_view prefix, const Visit& visit) const override {
    for (auto at = map_->lower_bound(from); at != map_->end(); ++at)
      if (!at->first.starts_with(prefix) || !visit(at->first, at->second)) return;
  }

 private:
  MemStore& store_;
  std::shared_ptr<const MemStore::Map> map_;
};

// Changes wait in an overlay (nullopt: erased), so that dropping the transaction leaves no trace.
class MemTxn final : public Txn {
 public:
  explicit MemTxn(MemStore& store) : store_(store) {}

  std::optional<std::string_view> get(std::string_view key) const override {
    if (auto changed = overlay_.find(key); changed != overlay_.end()) return changed->second;
    auto found = base().find(key);
    if (found == base().end()) return std::nullopt;
    return found->second;
  }

  void scan(std::string_view from, std::string_view prefix, const Visit& visit) const override {
    auto old = base().lower_bound(from);
    auto changed = overlay_.lower_bound(from);
    while (old != base().end() || changed != overlay_.end()) {
      bool takeChanged =
          old == base().end() || (changed != overlay_.end() && changed->first <= old->first);
      const auto& key = takeChanged ? changed->first : old->first;
      if (!key.starts_with(prefix)) return;
      if (!takeChanged) {
        if (!visit(key, old->second)) return;
        ++old;
        continue;
      }
      if (old != base().end() && old->first == key) ++old;
      if (changed->second && !visit(key, *changed->second)) return;
      ++changed;
    }
  }

  void put(std::string_view key, std::string_view value) override {
    overlay_.insert_or_assign(std::string(key), std::string(value));
  }
  void erase(std::string_view key) override {
    overlay_.insert_or_assign(std::string(key), std::nullopt);
  }

  void commit() override {
    std::lock_guard lock(store_.mutex_);
    if (store_.map_.use_count() > 1) store_.map_ = std::make_shared<MemStore::Map>(*store_.map_);
    for (auto& [key, value] : overlay_) {
      if (value)
        store_.map_->insert_or_assign(key, *value);
      else
        store_.map_->erase(key);
    }
    overlay_.clear();
  }

 private:
  // The one writer is the only one that replaces or changes the map.
  const MemStore::Map& base() const { return *store_.map_; }

  MemStore& store_;
  std::map<std::string, std::optional<std::string>, std::less<>> overlay_;
};

std::unique_ptr<View> MemStore::snapshot() {
  return std::make_unique<MemSnapshot>(*this);
}
std::unique_ptr<Txn> MemStore::begin() {
  return std::make_unique<MemTxn>(*this);
}

}  // namespace trainfs::mds
