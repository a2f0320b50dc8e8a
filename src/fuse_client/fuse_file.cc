// FUSE handlers for open files.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <cstring>

#include "fuse_client/client.h"
#include "fuse_client/fuse_ops.h"
#include "fuse_client/fuse_request.h"
#include "fuse_client/receive_loop.h"

namespace trainfs::client {

namespace {

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
  auto groups = op.mode & S_ISGID ? Request::Groups::kYes : Request::Groups::kNo;
  request->execute(request->identity(groups), op, [=, info = *file](Result<Outcome> outcome) {
    auto& client = request->client();
    client.inodes().forgetState(op.parent);
    if (!outcome) {
      bool raced = outcome.error() == Errno(EEXIST) && !exclusive;
      return request->error(raced ? ESTALE : outcome.error().code());
    }
    if (!outcome->node) return request->error(EIO);
    auto inode = client.inodes().obtain(outcome->node->attributes.inode);
    client.inodes().addHandle(inode, writing);
    auto taken = client.inodes().takeChange(*inode, *outcome->node);
    {
      std::lock_guard lock(inode->mutex);
      inode->parent = op.parent;
      inode->pastUnknown = false;
      inode->absentXattrs = kNoCapability;
      inode->toldOpen = op.opening != Opening::kNot;
      inode->toldWriting = writing;
    }
    giveHandle(request, inode, info, writing, &taken);
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

// A handle that was opened when this client might cache goes on to fill the page cache when others
// have come. What it reads then is dropped as soon as it has been read: the invalidation waits for
// the answer, if it comes first.
void read(fuse_req_t req, fuse_ino_t, size_t size, off_t offset, fuse_file_info* file) {
  auto request = Request::begin(req);
  auto& client = request->client();
  auto inode = handleOf(file).inode;
  bool cached = handleOf(file).cached;
  auto at = static_cast<uint64_t>(offset);
  client.buffers().whenFree([request, inode, at, size, cached](BufferPool::Buffer buffer) {
    auto& client = request->client();
    std::span into(buffer.get(), std::min(size, client.buffers().bufferBytes()));
    // `buffer` goes along by name: nothing below mentions it, and it must outlive the read.
    auto finish = [request, inode, into, cached, buffer](Result<size_t> bytes) {
      if (!bytes) return request->error(bytes.error().code());
      auto& client = request->client();
      if (cached && !client.coherence().mayCache()) client.invalidator().invalidatePages(inode->id);
      request->bytes(into.first(*bytes));
    };
    client.files().read(inode, at, into, std::move(finish));
  });
}

struct Write {
  InodePtr inode;
  uint64_t offset = 0;
  bool killPrivileges = false;
  bool durable = false;
  Losses::Mark losses;
};

// `buffer` holds `data`, until the OSTs have it. If the caller is killed before, whatever is done
// to the file later waits for that: its bytes must not come over newer ones.
void writeFrom(const RequestPtr& request, const Write& write, BufferPool::Buffer buffer,
               std::span<const std::byte> data) {
  request->client().files().write(
      write.inode, write.offset, data, write.killPrivileges,
      [request, inode = write.inode, buffer = std::move(buffer), durable = write.durable,
       losses = write.losses](Result<size_t> written) {
        if (!written) return request->error(written.error().code());
        if (!durable) return request->written(*written);
        request->client().files().sync(inode, losses, [request, count = *written](Status status) {
          if (!status) return request->error(status.error().code());
          request->written(count);
        });
      });
  auto barrier = [inode = write.inode] { inode->access->exclusive([](OrderedAccess::Pass) {}); };
  if (!request->onGiveUp(barrier)) barrier();
}

// Data in the kernel's ring is copied: its memory serves the next request as soon as this one is
// answered, and a caller that is killed is answered before the OSTs have the data. Write-back of a
// mapping is never given up, since its pages are not the caller's alone.
void write(fuse_req_t req, fuse_ino_t, const char* bytes, size_t size, off_t offset,
           fuse_file_info* file) {
  auto request = Request::begin(req, !file->writepage);
  Write write{.inode = handleOf(file).inode,
              .offset = static_cast<uint64_t>(offset),
              .killPrivileges = file->kill_suidgid != 0,
              .durable = (file->flags & (O_SYNC | O_DSYNC)) != 0,
              .losses = handleOf(file).losses};
  std::span data(reinterpret_cast<const std::byte*>(bytes), size);
  if (!fuse_req_is_uring(req)) return writeFrom(request, write, ReceiveLoop::keep(), data);
  request->client().buffers().whenFree([request, write, data](BufferPool::Buffer buffer) {
    if (request->copyOut(data, buffer.get()))
      writeFrom(request, write, buffer, {buffer.get(), data.size()});
  });
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
  ops.release = release;
  ops.flush = flush;
  ops.fsync = fsync;
  ops.read = read;
  ops.write = write;
  ops.fallocate = fallocate;
}

}  // namespace trainfs::client
