// One bulk request from its frame to its reply. Belongs to one data worker.
#pragma once

#include <sys/uio.h>

#include <vector>

#include "oss/buffer_pool.h"
#include "oss/object_store.h"
#include "trainfs/bulk.h"

namespace trainfs::oss {

struct Request {
  BulkHeader header;
  std::vector<BulkExtent> extents;
  std::vector<uint64_t> sums;  // of a write's payload
  BufferPool::Buffer buffer;   // a write's payload; room for what a read reads
  size_t charge = 0;           // see Reply
  uint32_t registration = 0;   // of the OST, in which the request was admitted

  // Bytes of buffer that the request needs, known from its checked head.
  static size_t bufferBytes(const BulkHeader& header, std::span<const BulkExtent> extents);
};

// A frame on its way out. `payload` points into `buffer`.
struct Reply {
  std::vector<std::byte> head;
  std::vector<iovec> payload;
  BufferPool::Buffer buffer;
  size_t charge = 0;  // what its request takes of its connection's share of the buffers
};

// Answers `request` with a status and nothing else.
Reply refuse(const BulkHeader& request, BulkStatus status, uint16_t errorCode = 0);

// Runs an admitted request (not a hello) against the objects of its OST. Its buffer goes back to
// the pool as soon as nobody needs it.
Task<Reply> perform(Reactor& reactor, ObjectStore& store, const std::string& ostName,
                    Request& request);

}  // namespace trainfs::oss
