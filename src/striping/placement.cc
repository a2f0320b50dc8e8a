#include "striping/placement.h"

#include <algorithm>
#include <numeric>

#include "striping/layout.h"

namespace trainfs::striping {
namespace {

// Round robin as long as the free space of any two OSTs differs by no more than this share of the
// greatest; beyond it new files are steered towards free space. As Lustre's qos_threshold_rr.
constexpr uint64_t kImbalancePercent = 17;

bool usable(const OstSpace& ost) { return ost.active && ost.totalBytes > 0 && !isFull(ost); }

// Usable OSTs by index, without `except`.
std::vector<const OstSpace*> usableOsts(const std::vector<OstSpace>& osts, uint32_t except) {
  std::vector<const OstSpace*> result;
  for (const OstSpace& ost : osts)
    if (ost.index != except && usable(ost)) result.push_back(&ost);
  std::sort(result.begin(), result.end(),
            [](const OstSpace* a, const OstSpace* b) { return a->index < b->index; });
  return result;
}

bool exists(const std::vector<OstSpace>& osts, uint32_t index) {
  return std::any_of(osts.begin(), osts.end(),
                     [index](const OstSpace& ost) { return ost.index == index; });
}

bool balanced(const std::vector<const OstSpace*>& osts) {
  auto less = [](const OstSpace* a, const OstSpace* b) {
    return a->availableBytes < b->availableBytes;
  };
  auto [least, most] = std::minmax_element(osts.begin(), osts.end(), less);
  uint64_t difference = (*most)->availableBytes - (*least)->availableBytes;
  return difference <= (*most)->availableBytes / 100 * kImbalancePercent;
}

// `count` OSTs that follow each other cyclically from position `start`.
std::vector<ChainId> following(const std::vector<const OstSpace*>& osts, size_t start,
                               size_t count) {
  std::vector<ChainId> chains;
  for (size_t i = 0; i < count; i++) chains.push_back({osts[(start + i) % osts.size()]->index});
  return chains;
}

// Where the file of this turn starts, of n OSTs. Each file goes on where the one before stopped,
// and when that comes back to the start too early, one position further: n turns start once on each
// OST.
size_t roundRobinStart(uint64_t turn, size_t count, size_t n) {
  size_t common = std::gcd(count, n);
  uint64_t round = turn / (n / common) % common;
  return (turn % n * count + round) % n;
}

uint64_t mix(uint64_t value) {  // splitmix64's finaliser
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

// Draws without putting back; the chance of each is its share of the free space that is left.
std::vector<ChainId> weighted(std::vector<const OstSpace*> osts, size_t count, uint64_t turn) {
  // MiB, so that the sum of 65,536 OSTs of any size cannot overflow.
  auto weight = [](const OstSpace* ost) { return ost->availableBytes / kMiB + 1; };
  uint64_t total = 0;
  for (const OstSpace* ost : osts) total += weight(ost);
  std::vector<ChainId> chains;
  uint64_t random = turn;
  while (chains.size() < count) {
    random = mix(random);
    uint64_t ticket = random % total;
    auto drawn = osts.begin();
    for (; ticket >= weight(*drawn); ++drawn) ticket -= weight(*drawn);
    chains.push_back({(*drawn)->index});
    total -= weight(*drawn);
    osts.erase(drawn);
  }
  return chains;
}

}  // namespace

bool isFull(const OstSpace& ost) {
  return ost.availableBytes < ost.totalBytes / 100 + 1 && ost.availableBytes < kGiB;
}

Result<std::vector<ChainId>> chooseChains(const Component& component,
                                          const std::vector<OstSpace>& osts, uint64_t turn) {
  if (!component.ostList.empty()) {
    std::vector<ChainId> chains;
    for (uint32_t index : component.ostList) {
      if (!exists(osts, index)) return Errno(EINVAL);
      chains.push_back({index});
    }
    return chains;
  }
  size_t wanted = std::min(component.stripeCount, kStripesMax);  // also for kStripeCountAll
  uint32_t first = component.stripeOffset;
  auto candidates = usableOsts(osts, first);
  if (first != kAnyOst) {
    if (!exists(osts, first)) return Errno(EINVAL);
    auto next = std::find_if(candidates.begin(), candidates.end(),
                             [first](const OstSpace* ost) { return ost->index > first; });
    auto chains =
        following(candidates, next - candidates.begin(), std::min(wanted - 1, candidates.size()));
    chains.insert(chains.begin(), ChainId{first});
    return chains;
  }
  if (candidates.empty()) return Errno(ENOSPC);
  size_t count = std::min(wanted, candidates.size());
  if (balanced(candidates))
    return following(candidates, roundRobinStart(turn, count, candidates.size()), count);
  return weighted(std::move(candidates), count, turn);
}

Result<Layout> place(Layout layout, const std::vector<OstSpace>& osts, uint64_t turn) {
  if (layout.components.empty()) layout.components = defaultLayout().components;
  layout.generation = std::max(layout.generation, 1u);
  Component& first = layout.components[0];
  bool anyActive =
      std::any_of(osts.begin(), osts.end(), [](const OstSpace& ost) { return ost.active; });
  if (first.instantiated() || !anyActive) return layout;
  auto chains = chooseChains(first, osts, turn);
  if (!chains) return chains.error();
  setChains(first, std::move(*chains));
  return layout;
}

void setChains(Component& component, std::vector<ChainId> chains) {
  component.stripeCount = static_cast<uint32_t>(chains.size());
  component.exists.assign(chains.size(), false);
  component.chains = std::move(chains);
}

Layout defaultLayout() {
  Component component;
  component.stripeBytes = kDefaultStripeBytes;
  return {.generation = 1, .components = {component}};
}

}  // namespace trainfs::striping
