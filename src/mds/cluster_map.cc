#include "mds/cluster_map.h"

#include <chrono>
#include <utility>

#include "trainfs/logging.h"

namespace trainfs::mds {

namespace {

uint64_t wallMicroseconds() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace

OstTable::OstTable(const View& view, kj::Timer& timer, const ServerOptions& options)
    : timer_(timer), term_(options.ostTerm), fsname_(fsname(view)), version_(wallMicroseconds()) {
  for (auto& record : osts(view)) {
    Ost& ost = osts_[record.index];
    ost.record = record;
    ost.leaseUntil = timer_.now() + term_;
    ost.awaited = true;
  }
}

uint64_t OstTable::registered(OstRecord record, rpc::OssControl::Client control, Space space) {
  Ost& ost = osts_[record.index];
  ost.record = std::move(record);
  ost.space = space;
  ost.active = true;
  ost.awaited = false;
  ost.control = kj::mv(control);
  ost.leaseUntil = timer_.now() + term_;
  ost.registration = ++registrations_;
  spdlog::info("{} serves at {} ({} data ports)", ostName(fsname_, ost.record.index),
               ost.record.host, ost.record.ports.size());
  newVersion();
  return ost.registration;
}

bool OstTable::renew(uint32_t index, uint64_t registration, Space space) {
  auto found = osts_.find(index);
  if (found == osts_.end()) return false;
  Ost& ost = found->second;
  if (ost.registration != registration || !ost.active) return false;
  ost.space = space;
  ost.leaseUntil = timer_.now() + term_;
  return true;
}

void OstTable::lost(uint32_t index, uint64_t registration, const char* why) {
  auto found = osts_.find(index);
  if (found == osts_.end() || found->second.registration != registration) return;
  if (found->second.active) deactivate(found->second, why);
}

void OstTable::expire() {
  for (auto& [index, ost] : osts_) {
    if (ost.leaseUntil > timer_.now()) continue;
    if (ost.active) deactivate(ost, "its lease ran out");
    if (std::exchange(ost.awaited, false)) changed_.notify();
  }
}

bool OstTable::settling() const {
  bool anyActive = false;
  for (auto& [index, ost] : osts_) {
    if (ost.awaited) return true;
    anyActive |= ost.active;
  }
  return !anyActive;
}

const Ost* OstTable::find(uint32_t index) const {
  auto found = osts_.find(index);
  return found == osts_.end() ? nullptr : &found->second;
}

bool OstTable::servedElsewhere(const OstRecord& record) const {
  auto* known = find(record.index);
  if (known == nullptr || known->record.uuid != record.uuid) return false;
  bool moved = known->record.host != record.host || known->record.ports != record.ports;
  return moved && known->leaseUntil > timer_.now();
}

kj::Maybe<rpc::OssControl::Client> OstTable::control(uint32_t index) {
  auto found = osts_.find(index);
  if (found == osts_.end()) return nullptr;
  return found->second.control.map([](rpc::OssControl::Client& control) { return control; });
}

ClusterMap OstTable::map() const {
  ClusterMap map{.version = version_, .fsname = fsname_};
  for (auto& [index, ost] : osts_) {
    auto& record = ost.record;
    map.osts.push_back({.index = index,
                        .uuid = record.uuid,
                        .host = record.host,
                        .ports = record.ports,
                        .chainVersion = record.chainVersion,
                        .active = ost.active});
  }
  return map;
}

std::vector<striping::OstSpace> OstTable::space() const {
  std::vector<striping::OstSpace> space;
  space.reserve(osts_.size());
  for (auto& [index, ost] : osts_)
    space.push_back({.index = index,
                     .active = ost.active,
                     .totalBytes = ost.space.totalBytes,
                     .availableBytes = ost.space.availableBytes});
  return space;
}

void OstTable::deactivate(Ost& ost, const char* why) {
  ost.active = false;
  ost.control = nullptr;
  spdlog::warn("{} is away: {}", ostName(fsname_, ost.record.index), why);
  newVersion();
}

void OstTable::newVersion() {
  ++version_;
  changed_.notify();
  onChange_();
}

std::string ostName(const std::string& fsname, uint32_t index) {
  return fmt::format("{}-OST{:04x}", fsname, index);
}

}  // namespace trainfs::mds
