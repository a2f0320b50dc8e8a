// Layouts in words, as in setxattr: refused in words, or a sound layout that reads back the same.
#include "layouts.h"

using namespace trainfs;
using fuzz::require;

std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> seeds = {
      "stripe_size=1M stripe_count=-1", "end=64M\nstripe_count=4 pool=flash stripe_offset=1",
      "start=0 end=eof pattern=raid0 osts=1,2,3", "generation=9\nend=-1 chains=1 exists=1"};
  for (auto& layout : someLayouts()) seeds.push_back(striping::formatLayout(layout));
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (auto state : {striping::StateFields::kIgnore, striping::StateFields::kKeep}) {
    auto parsed = striping::parseLayout(fuzz::text(data, size), state);
    if (!parsed.error.empty()) continue;
    fuzz::requireSound(parsed.layout, 0);
    auto record = striping::encodeLayout(parsed.layout);
    auto decoded = striping::decodeLayout(record);
    require(decoded.ok() && *decoded == parsed.layout);
    auto again =
        striping::parseLayout(striping::formatLayout(parsed.layout), striping::StateFields::kKeep);
    require(again.error.empty() && again.layout == parsed.layout);
  }
  return 0;
}
