// The FUSE mount itself: made, served by its threads, unmade.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "fuse_client/client.h"
#include "fuse_client/mount_options.h"
#include "fuse_client/receive_loop.h"

struct fuse_session;

namespace trainfs::client {

class KernelMount {
 public:
  // Throws std::runtime_error with the reason. `ended` runs once the kernel has let the mount go,
  // on a thread of this.
  KernelMount(Client& client, const MountOptions& options, std::function<void()> ended);
  // Ends the threads; requests that are still unanswered stay answerable until destroySession.
  ~KernelMount();

  // Waits until the mount serves, then gives it its read-ahead.
  void settle();
  // Takes it out of the tree, also when it is busy. The kernel may have pages to write first: if
  // that is not done within `patience`, it goes on.
  void detach(std::chrono::milliseconds patience);
  // Ends the threads and the connection to the kernel: whoever still waits for an answer is told
  // that there will be none. Waits for no server.
  void stop();

  // Returns what is wrong, or an empty string.
  std::string setReadahead(uint32_t kib);

  // For -v: what of the kernel is in use, and why not.
  std::string describe() const;

 private:
  std::string prepareUring();
  fuse_session* makeSession();
  void settleUring();
  void noUring(const std::string& reason);

  Client& client_;
  const MountOptions& options_;
  std::string mountPoint_;  // absolute
  fuse_session* session_ = nullptr;
  bool uring_ = false;         // asked of the kernel
  std::string readaheadFile_;  // of the kernel
  std::unique_ptr<ReceiveLoop> loop_;
};

}  // namespace trainfs::client
