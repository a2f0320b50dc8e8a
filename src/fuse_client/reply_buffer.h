// Received bytes of one connection, up to the point where payload can go straight to its memory,
// and the checks of what a reply says. Pure: no sockets. Owned by the connection's worker thread.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fuse_client/data_request.h"
#include "trainfs/bulk.h"

namespace trainfs::client {

// Asked of the socket at a time while no payload is due. Several small replies, payload included,
// then cost one receive; of a big payload at most this much is copied once more.
inline constexpr size_t kReceiveBytes = 16 * kKiB;
static_assert(kReceiveBytes >= kBulkHeadBytesMax);

struct ReplyHead {
  BulkHeader header;
  std::array<BulkExtent, kBulkExtentsMax> extents;
  std::array<uint64_t, kBulkSumsMax> sums;
};

class ReplyBuffer {
 public:
  ReplyBuffer() : bytes_(kReceiveBytes) {}

  // Where the next received bytes go (never empty while what is buffered is an incomplete head),
  // and how many came.
  std::span<std::byte> space();
  void filled(size_t bytes) { end_ += bytes; }

  enum class Parsed { kIncomplete, kHead, kMalformed };
  // Takes the next head out. `wrong` says what is malformed; nothing after it can be trusted.
  Parsed parse(ReplyHead& head, std::string& wrong);

  // Takes up to to.size() bytes of payload out, or drops up to `bytes`. Returns how many.
  size_t take(std::span<std::byte> to);
  size_t skip(size_t bytes);
  void clear() { begin_ = end_ = 0; }

 private:
  std::vector<std::byte> bytes_;
  size_t begin_ = 0, end_ = 0;
};

// Empty when the reply can be one to this request; otherwise what is wrong.
std::string matchReply(const Request& request, const ReplyHead& head);

// The lengths of a read's reply against its request: the rest of each slice becomes zeros.
void zeroWhatIsMissing(const Request& request, const ReplyHead& head);

// Checks the payload of a complete read against the sums in its reply. Returns an empty string, or
// the object, offset and both sums of the first piece that differs.
std::string verifyRead(const Request& request, const ReplyHead& head);

}  // namespace trainfs::client
