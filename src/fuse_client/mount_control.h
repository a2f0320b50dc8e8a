// What can be asked of a mount that serves, and be changed about it: by ioctl(2) on its root, which
// neither the permissions of a file nor a read-only mount refuse. The other end is remount.cc.
// Any thread.
#pragma once

#include <sys/ioctl.h>

#include <functional>
#include <mutex>
#include <string>

#include "fuse_client/mount_options.h"

namespace trainfs::client {

struct ControlText {
  char text[4096];  // with a zero byte behind it
};
// The options as they are now, as after -o.
inline constexpr unsigned kGetOptions = _IOR('t', 0x71, ControlText);
// In: options that shall be otherwise. Out: what is wrong with them, or nothing. Root only.
inline constexpr unsigned kChangeOptions = _IOWR('t', 0x72, ControlText);

class MountControl {
 public:
  explicit MountControl(const MountOptions& options) : options_(options) {}

  // How read-ahead is set, once there is a mount: returns what is wrong.
  void onReadahead(std::function<std::string(uint32_t)> set);

  std::string options() const;
  // All of the list, or nothing of it and what is wrong.
  std::string change(const std::string& list);

 private:
  mutable std::mutex mutex_;
  MountOptions options_;
  std::function<std::string(uint32_t)> setReadahead_;
};

}  // namespace trainfs::client
