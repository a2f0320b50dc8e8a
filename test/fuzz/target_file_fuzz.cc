// Target files: refused with the file's name, or a target that is written and read back the same.
#include "target.h"
#include "trainfs/target.h"

using namespace trainfs;
using fuzz::require;

std::vector<std::string> fuzz::seeds() {
  Target mdt{.kind = Target::Kind::kMdt,
             .fsname = "trainfs",
             .uuid = "0f8fad5b-d9cb-469f-a165-70867728950e"};
  mdt.mgs = true;
  Target ost = mdt;
  ost.kind = Target::Kind::kOst;
  ost.mgs = false;
  ost.index = 3;
  ost.mgsNodes = {"mds1:7171", "[fe80::1]"};
  return {encodeTarget(mdt), encodeTarget(ost)};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Target target;
  auto wrong = decodeTarget(std::string(fuzz::text(data, size)), "/ost/file", target);
  if (!wrong.empty()) {
    require(wrong.starts_with("/ost/file:"));
    return 0;
  }
  require(checkTarget(target).empty());
  Target again;
  require(decodeTarget(encodeTarget(target), "/ost/file", again).empty());
  require(encodeTarget(again) == encodeTarget(target));
  return 0;
}
