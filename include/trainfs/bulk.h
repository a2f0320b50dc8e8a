// Bulk frames: how data moves between a client and an OSS. Prose: docs/format-bulk.md.
//
// A frame is: BulkHeader | extentCount x BulkExtent | sumCount x uint64 | payload.
// All integers little-endian. Requests and replies have the same shape; a reply repeats the
// request's operation and requestId, has kBulkReply set, and carries one extent per request extent
// with lengthBytes replaced by what was done.
//
// sums: the XXH3 (64 bit, seed 0) of each piece of payload, cut at 64 KiB block borders of the
// object: blockPieces(extent) sums per extent, in order. A sum of a whole block is the very one
// stored at rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "trainfs/types.h"

namespace trainfs {

inline constexpr uint32_t kBulkMagic = 0x6b627466;  // "ftbk"
inline constexpr uint16_t kBulkVersion = 2;
inline constexpr uint32_t kBulkExtentsMax = 64;
inline constexpr uint32_t kBulkPayloadBytesMax = 8 * kMiB;

enum class BulkOp : uint8_t {
  kHello = 1,  // first frame of a connection: who is speaking; no extents
  kRead = 2,   // request: extents. Reply: extents with bytes read, sums, payload
  kWrite = 3,  // request: extents, sums, payload. Reply: extents
  kPunch = 4,  // zero and deallocate [offset, offset+length) of each extent; size unchanged
  // 5 stays unused: it was a truncation, which the MDS asks for itself (oss.capnp).
  kSync = 6,  // each object of the extents is on stable storage, sums too, when answered
  kStat = 7,  // reply: offsetBytes = object size, lengthBytes = min(allocated bytes / 4096, 2^32-1)
};

// Header flags.
inline constexpr uint16_t kBulkReply = 1;

// Extent flags.
inline constexpr uint32_t kExtentMustExist = 1;  // request: a missing object is EIO, not zeros
inline constexpr uint32_t kExtentMissing = 2;    // reply: there is no such object
inline constexpr uint32_t kExtentVerify = 4;     // read request: the server checks the sums, too

// What can be wrong with a request. Errno-like outcomes of I/O travel in BulkHeader::errorCode.
enum class BulkStatus : uint8_t {
  kOk = 0,
  kIoError = 1,       // errorCode says which errno: EIO, ENOSPC, EFBIG, EINVAL
  kStaleSession = 2,  // session unknown or its epoch is over: reopen the session, nothing was done
  kStaleChain = 3,    // this OSS does not serve that chain at that version: refresh the cluster map
  kBadSum = 4,        // a payload sum does not match: resend
  kRetry = 5,         // not now (starting, or limits reached): resend later
};

struct BulkHeader {
  uint32_t magic = kBulkMagic;
  uint16_t version = kBulkVersion;
  BulkOp op = BulkOp::kHello;
  BulkStatus status = BulkStatus::kOk;
  uint64_t sum = 0;  // XXH3 of header (with sum = 0), extents and sums
  uint64_t requestId = 0;
  uint64_t session = 0;
  uint32_t epoch = 0;
  uint32_t chain = 0;
  uint32_t chainVersion = 0;
  uint32_t payloadBytes = 0;
  uint16_t flags = 0;
  uint16_t extentCount = 0;
  uint16_t sumCount = 0;
  uint16_t errorCode = 0;
  // kHello: lane of the session's connections to this worker. A newer connection of the same
  // (session, lane) replaces the older one: what that one still had in flight is finished or
  // dropped before the hello is answered, so a resent write can never be overtaken by its first
  // copy.
  uint32_t lane = 0;
  uint32_t reserved = 0;
};
static_assert(sizeof(BulkHeader) == 64 && std::is_trivially_copyable_v<BulkHeader>);

struct BulkExtent {
  uint8_t object[16];  // encodeObjectId
  uint64_t offsetBytes = 0;
  uint32_t lengthBytes = 0;
  uint32_t flags = 0;
  // Replies to write, punch and sync: stands for the memory that the object's unsynced changes are
  // in. A change that was answered with another one than its sync may be lost. 0: no such object.
  // 0 also in everything else.
  uint64_t verifier = 0;
};
static_assert(sizeof(BulkExtent) == 40 && std::is_trivially_copyable_v<BulkExtent>);

// Most sums that a legal frame can carry: every extent adds at most one cut at each end.
inline constexpr uint32_t kBulkSumsMax = kBulkPayloadBytesMax / kBlockBytes + 2 * kBulkExtentsMax;
inline constexpr size_t kBulkHeadBytesMax =
    sizeof(BulkHeader) + kBulkExtentsMax * sizeof(BulkExtent) + kBulkSumsMax * sizeof(uint64_t);

// How many block pieces [offset, offset+length) of an object is cut into; 0 for length 0.
uint32_t blockPieces(uint64_t offsetBytes, uint64_t lengthBytes);

// XXH3, 64 bit, seed 0.
uint64_t blockSum(const void* data, size_t bytes);

// Writes the sums of `data`, which is [offset, offset+data.size()) of an object, to `sums`
// (blockPieces of them); returns how many.
uint32_t sumPieces(uint64_t offsetBytes, std::span<const std::byte> data, uint64_t* sums);

// True when the sums of `data` are those in `sums`.
bool verifyPieces(uint64_t offsetBytes, std::span<const std::byte> data, const uint64_t* sums);

// Fills header.sum. `tail` is the extents and sums that follow the header, as sent.
void sealHead(BulkHeader& header, std::span<const std::byte> tail);

// Checks a header before anything is allocated for it: magic, version, operation, and all counts
// against their limits. Returns an empty string, or what is wrong, for the log.
std::string checkHeader(const BulkHeader& header);

// Bytes of extents and sums that follow a checked header.
size_t tailBytes(const BulkHeader& header);

// Checks the sum of header and tail, that sumCount and payloadBytes are what op and extents demand,
// and that no extent overflows. Returns an empty string, or what is wrong. After it, the frame is
// safe to use.
std::string checkHead(const BulkHeader& header, std::span<const std::byte> tail);

// Which of an OSS's data workers owns an object: every request for it goes to that worker's port,
// so an object's state belongs to one thread and needs no lock.
uint32_t workerOf(const ObjectId& object, uint32_t workers);

}  // namespace trainfs
