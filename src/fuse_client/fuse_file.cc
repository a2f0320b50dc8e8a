// FUSE handlers for open files.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "fuse_client/client.h"
#include "fuse_client/fuse_ops.h"
#include "fuse_client/fuse_request.h"
#include "fuse_client/receive_loop.h"

namespace trainfs::client {

namespace {

// Of the requests that one of the kernel's rings holds, at most five eighths are reads and writes,
// which may wait for an OST; with a quarter for those who wait for locks (fuse_locks.cc) there is
// room for others.
uint32_t transfersInRing(uint32_t depth) {
  return std::max(1u, depth * 5 / 8);
}

OpenHandle& handleOf(fuse_file_info* file) {
  return *reinterpret_cast<OpenHandle*>(file->fh);
}

bool isWriting(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY;
}

// The cache mode is fixed at open. Readers use the page cache, and keep what is in it; writers go
// past it, in parallel, which drops the pages they overlap. While other clients are about,
// everything goes past it.
//
// A process that closes a file loses its record locks of it, and only a flush tells of that: what
// is opened once there are such locks is flushed. Readers of mounts without any are spared the
// request.
void setCacheMode(fuse_file_info& file, bool writing, bool mayCache, bool recordLocks) {
  bool cached = !writing && mayCache;
  file.keep_cache = cached;
  file.direct_io = !cached;
  file.parallel_direct_writes = !cached;
  file.noflush = !writing && !recordLocks;
}

// Hands an open handle to the kernel, or closes it if the caller is gone.
void giveHandle(const RequestPtr& request, const InodePtr& inode, fuse_file_info file, bool writing,
                const Inodes::Taken* created) {
  auto handle = std::make_unique<OpenHandle>(OpenHandle{inode, writing});
  {
    std::lock_guard lock(inode->mutex);
    handle->losses = inode->losses.newMark();
  }
  file.fh = reinterpret_cast<uint64_t>(handle.get());
  bool given;
  {
    Coherence::Answering answering(request->client().coherence());
    bool recordLocks = request->client().locks().hadRecordLocks();
    setCacheMode(file, writing, answering.mayCache(), recordLocks);
    handle->cached = !file.direct_io;
    given = created ? request->created(inode, *created, file, answering) : request->opened(file);
  }
  if (given)
    handle.release();
  else
    request->client().files().close(inode, writing);
}

void open(fuse_req_t req, fuse_ino_t id, fuse_file_info* file) {
  auto request = Request::begin(req);
  auto& client = request->client();
  auto inode = client.inodes().obtain(inodeOf(req, id));
  bool writing = isWriting(file->flags);
  auto start = [request, inode, info = *file, writing] {
    if (request->answered()) return;  // killed while it waited
    request->client().files().open(inode, writing, [=](Status status) {
      if (!status) return request->error(status.error().code());
      giveHandle(request, inode, info, writing, nullptr);
    });
  };
  // The file may be about to be unlinked by somebody who was killed; then the kernel looks again.
  if (writing)
    client.abandonedChanges().afterAll(start);
  else
    start();
}

// The file is made: hands it, open, to the kernel.
void giveCreated(const RequestPtr& request, const CreateOp& op, const fuse_file_info& info,
                 const Node& node) {
  auto& client = request->client();
  auto inode = client.inodes().obtain(node.attributes.inode);
  bool writing = op.opening == Opening::kWriting;
  client.inodes().addHandle(inode, writing);
  auto taken = client.inodes().takeChange(*inode, node);
  {
    std::lock_guard lock(inode->mutex);
    inode->parent = op.parent;
    inode->pastUnknown = false;
    inode->absentXattrs = kNoCapability;
    inode->toldOpen = op.opening != Opening::kNot;
    inode->toldWriting = writing;
    inode->orphan = op.unnamed;
  }
  if (op.opening != Opening::kNot || client.coherence().mayCache())
    return giveHandle(request, inode, info, writing, &taken);
  // Recalled meanwhile, and the answer to that may have been without this file.
  client.files().open(inode, false, [=](Status told) {
    request->client().files().close(inode, false);  // the handle of the open, or the other one
    if (!told) return request->error(told.error().code());
    giveHandle(request, inode, info, writing, &taken);
  });
}

// Always exclusively: if the file has come into being meanwhile, the kernel is told that it knows
// something stale, looks the name up again and opens what is there, with its own checks of
// permission.
void create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
            fuse_file_info* file) {
  auto request = Request::begin(req);
  auto& client = request->client();
  bool writing = isWriting(file->flags);
  bool exclusive = (file->flags & O_EXCL) != 0;
  CreateOp op{.parent = inodeOf(req, parent), .name = name, .mode = (mode & 07777) | S_IFREG};
  bool tell = !client.coherence().mayCache();
  op.opening = writing ? Opening::kWriting : tell ? Opening::kReading : Opening::kNot;
  request->create(op, [=, info = *file](Result<Outcome> outcome) {
    request->client().inodes().forgetState(op.parent);
    if (!outcome) {
      bool raced = outcome.error() == Errno(EEXIST) && !exclusive;
      return request->error(raced ? ESTALE : outcome.error().code());
    }
    if (!outcome->node) return request->error(EIO);
    giveCreated(request, op, info, *outcome->node);
  });
}

// O_TMPFILE: without a name, and for writing, says the kernel.
void tmpfile(fuse_req_t req, fuse_ino_t parent, mode_t mode, fuse_file_info* file) {
  auto request = Request::begin(req);
  CreateOp op{.parent = inodeOf(req, parent),
              .mode = (mode & 07777) | S_IFREG,
              .opening = Opening::kWriting,
              .unnamed = true,
              .linkable = (file->flags & O_EXCL) == 0};
  request->create(op, [=, info = *file](Result<Outcome> outcome) {
    if (!outcome) return request->error(outcome.error().code());
    if (!outcome->node) return request->error(EIO);
    giveCreated(request, op, info, *outcome->node);
  });
}

void release(fuse_req_t req, fuse_ino_t, fuse_file_info* file) {
  auto request = Request::begin(req, false);
  std::unique_ptr<OpenHandle> handle(&handleOf(file));
  request->client().locks().ended(handle->inode->id, handle.get());
  request->client().files().close(handle->inode, handle->writing);
  request->error(0);
}

void flush(fuse_req_t req, fuse_ino_t, fuse_file_info* file) {
  auto request = Request::begin(req);
  auto& handle = handleOf(file);
  auto inode = handle.inode;
  bool lost;
  {
    std::lock_guard lock(inode->mutex);
    lost = inode->losses.take(handle.losses);
  }
  // Of this process. Others are to find what was written under them.
  auto unlock = [request, inode, owner = file->lock_owner](int error) {
    request->client().locks().closed(inode->id, owner, [request, error] { request->error(error); });
  };
  if (lost) return unlock(EIO);
  if (!handle.writing || request->client().coherence().mayCache()) return unlock(0);
  request->client().files().report(inode,
                                   [unlock](Status status) { unlock(status.errnoOrZero()); });
}

void fsync(fuse_req_t req, fuse_ino_t, int, fuse_file_info* file) {
  auto request = Request::begin(req);
  auto& handle = handleOf(file);
  request->client().files().sync(handle.inode, handle.losses, [request](Status status) {
    request->error(status.errnoOrZero());
  });
}

// ---- data ----

// Requests in one of the kernel's rings, whose places go as they are answered. Each of libfuse's
// threads serves one.
Places& placesInRing(uint32_t depth) {
  thread_local auto places = std::make_shared<Places>(transfersInRing(depth));
  return *places;
}

// Room for what a request brings or asks for. Null: there is none, and it is answered. Pages of
// mappings cannot be refused, and the kernel has few of them under way.
Places::Place placeFor(const RequestPtr& request, bool mayBeRefused) {
  auto& client = request->client();
  auto take = [mayBeRefused](Places& places) {
    return mayBeRefused ? places.take() : places.takeAlways();
  };
  auto place = take(client.transfers());
  if (place && fuse_req_is_uring(request->raw())) {
    auto inRing = take(placesInRing(client.kernelFeatures().uringQueueDepth));
    if (!inRing) place.reset();
    request->keep(std::move(inRing));
  }
  if (!place) request->error(ENOBUFS);
  return place;
}

// If the caller is killed before the transfer is over.
void withdrawWhenGivenUp(const RequestPtr& request, const InodePtr& inode,
                         const TransferPtr& transfer, FileIo::Direction direction) {
  auto& files = request->client().files();
  request->onGiveUp([&files, inode, weak = std::weak_ptr(transfer), direction] {
    if (auto transfer = weak.lock()) files.withdraw(inode, *transfer, direction);
  });
}

// A handle that was opened when this client might cache goes on to fill the page cache when others
// have come. What it reads then is dropped as soon as it has been read: the invalidation waits for
// the answer, if it comes first.
void read(fuse_req_t req, fuse_ino_t, size_t size, off_t offset, fuse_file_info* file) {
  auto request = Request::begin(req);
  auto& client = request->client();
  auto inode = handleOf(file).inode;
  bool cached = handleOf(file).cached;
  auto at = static_cast<uint64_t>(offset);
  auto place = placeFor(request, true);
  if (!place) return;
  auto transfer = std::make_shared<Transfer>(client.buffers().take(), std::move(place));
  std::span into(transfer->memory(), std::min(size, client.buffers().bufferBytes()));
  // `transfer` goes along by name: nothing below mentions it, and it must outlive the answer.
  auto finish = [request, inode, into, cached, transfer](Result<size_t> bytes) {
    if (!bytes) return request->error(bytes.error().code());
    auto& client = request->client();
    if (cached && !client.coherence().mayCache()) client.invalidator().invalidatePages(inode->id);
    request->bytes(into.first(*bytes));
  };
  withdrawWhenGivenUp(request, inode, transfer, FileIo::Direction::kRead);
  client.files().read(inode, at, into, std::move(finish), transfer);
}

// Its place is the end of the file, wherever the kernel takes that to be: then what it keeps of the
// pages there is old.
void append(const RequestPtr& request, const InodePtr& inode, std::span<const std::byte> data,
            uint64_t kernelsEnd, bool killPrivileges, Answer<size_t> finish,
            const TransferPtr& transfer) {
  auto appended = [request, inode, kernelsEnd,
                   finish = std::move(finish)](Result<FileIo::Appended> appended) {
    if (!appended) return finish(appended.error());
    if (appended->offsetBytes == kernelsEnd) return finish(appended->bytes);
    request->client().invalidator().invalidatePages(
        inode->id, [finish, bytes = appended->bytes] { finish(bytes); });
  };
  request->client().files().append(inode, data, killPrivileges, std::move(appended), transfer);
}

// Data in the kernel's ring is copied: its memory serves the next request as soon as this one is
// answered, and a caller that is killed is answered before the OSTs have the data. Write-back of a
// mapping is never given up, since its pages are not the caller's alone.
void write(fuse_req_t req, fuse_ino_t, const char* bytes, size_t size, off_t offset,
           fuse_file_info* file) {
  auto request = Request::begin(req, !file->writepage);
  auto place = placeFor(request, !file->writepage);
  if (!place) return;
  auto& client = request->client();
  auto& handle = handleOf(file);
  std::span data(reinterpret_cast<const std::byte*>(bytes), size);
  bool inRing = fuse_req_is_uring(req);
  auto buffer = inRing ? client.buffers().take() : ReceiveLoop::keep();
  if (inRing) {
    std::memcpy(buffer.get(), data.data(), size);
    data = {buffer.get(), size};
  }
  auto transfer = std::make_shared<Transfer>(std::move(buffer), std::move(place));
  bool durable = (file->flags & (O_SYNC | O_DSYNC)) != 0;
  auto finish = [request, inode = handle.inode, losses = handle.losses,
                 durable](Result<size_t> written) {
    if (!written) return request->error(written.error().code());
    if (!durable) return request->written(*written);
    request->client().files().sync(inode, losses, [request, count = *written](Status status) {
      if (!status) return request->error(status.error().code());
      request->written(count);
    });
  };
  withdrawWhenGivenUp(request, handle.inode, transfer, FileIo::Direction::kWrite);
  auto at = static_cast<uint64_t>(offset);
  bool killPrivileges = file->kill_suidgid != 0;
  if ((file->flags & O_APPEND) != 0 && !file->writepage)
    return append(request, handle.inode, data, at, killPrivileges, std::move(finish), transfer);
  client.files().write(handle.inode, at, data, killPrivileges, std::move(finish), transfer);
}

void fallocate(fuse_req_t req, fuse_ino_t, int mode, off_t offset, off_t length,
               fuse_file_info* file) {
  auto request = Request::begin(req);
  auto& files = request->client().files();
  auto inode = handleOf(file).inode;
  FileRange range{static_cast<uint64_t>(offset), static_cast<uint64_t>(length)};
  auto done = [request, inode](Status status) { request->error(status.errnoOrZero()); };
  switch (mode) {
    case 0:
      return files.extend(inode, range.endBytes(), done);
    case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
    case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
      return files.punch(inode, range, false, done);
    case FALLOC_FL_ZERO_RANGE:
      return files.punch(inode, range, true, done);
    default:
      return request->error(EOPNOTSUPP);
  }
}

}  // namespace

void addFileOps(fuse_lowlevel_ops& ops) {
  ops.open = open;
  ops.create = create;
  ops.tmpfile = tmpfile;
  ops.release = release;
  ops.flush = flush;
  ops.fsync = fsync;
  ops.read = read;
  ops.write = write;
  ops.fallocate = fallocate;
}

}  // namespace trainfs::client
