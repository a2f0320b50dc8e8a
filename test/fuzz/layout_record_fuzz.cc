// Layout records, as in inodes and on the wire: refused, or a sound layout with exactly this
// record.
#include <cstring>

#include "layouts.h"

using namespace trainfs;
using fuzz::require;

std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> seeds;
  for (auto& layout : someLayouts()) seeds.push_back(striping::encodeLayout(layout));
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto layout = striping::decodeLayout(fuzz::text(data, size));
  if (!layout || size == 0) return 0;
  require(striping::encodeLayout(*layout) == fuzz::text(data, size));
  uint64_t offset = 0;
  std::memcpy(&offset, data, std::min(size, sizeof offset));
  for (uint64_t at :
       {uint64_t{0}, offset, layout->components.empty() ? 0 : layout->components[0].endBytes - 1})
    fuzz::requireSound(*layout, at);
  if (layout->components.empty()) return 0;
  auto text = striping::formatLayout(*layout);
  if (text.size() > striping::kLayoutTextBytesMax) return 0;
  auto parsed = striping::parseLayout(text, striping::StateFields::kKeep);
  require(parsed.error.empty() && parsed.layout == *layout);
  return 0;
}
