#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>

#include "target.h"

// libFuzzer calls it before it looks at the arguments, the first of which that is no flag is the
// corpus.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  namespace fs = std::filesystem;
  spdlog::set_level(spdlog::level::off);
  for (int i = 1; i < *argc; ++i) {
    fs::path corpus = (*argv)[i];
    if (corpus.native().starts_with('-')) continue;
    if (fs::exists(corpus) && (!fs::is_directory(corpus) || !fs::is_empty(corpus))) return 0;
    fs::create_directories(corpus);
    size_t number = 0;
    for (auto& seed : trainfs::fuzz::seeds())
      std::ofstream(corpus / ("seed-" + std::to_string(number++)), std::ios::binary) << seed;
    return 0;
  }
  return 0;
}
