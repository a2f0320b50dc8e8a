// What of the kernel's FUSE a mount uses: filled in when the kernel says hello.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace trainfs::client {

struct KernelFeatures {
  std::atomic<bool> cameByUring{false};  // a request has: io_uring is in use
  bool offersUring = false;              // the kernel said so
  bool libfuseMended = false;            // it loses no replies over io_uring
  std::string whyNoUring;                // empty: it is in use. Settled before the mount serves
  uint32_t uringQueueDepth = 0;          // requests per processor, if it is in use
  uint32_t protocolMajor = 0, protocolMinor = 0;
  bool speaks(uint32_t major, uint32_t minor) const {
    return protocolMajor > major || (protocolMajor == major && protocolMinor >= minor);
  }
  uint32_t maxWriteBytes = 0, maxReadaheadBytes = 0;
  uint32_t readaheadBytes = 0;  // what the mount was given; 0: the kernel's own choice
  std::string whyNoReadahead;   // empty: it was
  std::vector<std::string> inUse, missing;
};

}  // namespace trainfs::client
