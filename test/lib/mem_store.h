// The store interface in memory, for tests: a sorted map, shared with snapshots and copied when a
// commit would change it under one. Same thread rules as any store.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "mds/store.h"

namespace trainfs::mds {

class MemStore final : public Store {
 public:
  using Map = std::map<std::string, std::string, std::less<>>;

  std::unique_ptr<View> snapshot() override;
  std::unique_ptr<Txn> begin() override;

 private:
  friend class MemSnapshot;
  friend class MemTxn;

  std::mutex mutex_;  // over map_ itself, and over every change in its use count
  std::shared_ptr<Map> map_ = std::make_shared<Map>();
};

}  // namespace trainfs::mds
