#include "fuse_client/mount_control.h"

#include "trainfs/logging.h"

namespace trainfs::client {

void MountControl::onReadahead(std::function<std::string(uint32_t)> set) {
  std::lock_guard lock(mutex_);
  setReadahead_ = std::move(set);
}

std::string MountControl::options() const {
  std::lock_guard lock(mutex_);
  return optionList(options_);
}

std::string MountControl::change(const std::string& list) {
  std::lock_guard lock(mutex_);
  MountOptions wanted = options_;
  if (auto wrong = parseOptionList(list, false, wanted); !wrong.empty()) return wrong;
  if (auto wrong = checkRemount(options_, wanted); !wrong.empty()) return wrong;
  if (wanted.readaheadKib != options_.readaheadKib && setReadahead_)
    if (auto wrong = setReadahead_(wanted.readaheadKib); !wrong.empty()) return wrong;
  setLogLevel(wanted.logLevel);
  options_ = wanted;
  spdlog::info("mount options are now {}", optionList(options_));
  return {};
}

}  // namespace trainfs::client
