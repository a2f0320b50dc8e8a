// FUSE handlers for reading directories.
//
// A page of entries is kept with the handle, so that several small requests of the kernel take one
// question to the MDS. It is used only while nothing in the directory has changed here: READDIRPLUS
// makes names in the kernel, and a name that was removed meanwhile must not come back.
#include <sys/stat.h>

#include <cstring>

#include "fuse_client/client.h"
#include "fuse_client/fuse_ops.h"
#include "fuse_client/fuse_request.h"

namespace trainfs::client {

namespace {

constexpr uint32_t kPageEntriesFirst = 128, kPageEntriesMax = 1024;
constexpr uint64_t kCookieDot = 1,
                   kCookieDotDot = 2;  // as telldir sees them; the MDS's are greater

struct DirHandle : OpenHandle {
  std::mutex mutex;
  DirPage page;
  uint64_t pageCookie = 0;  // the page follows this one
  Instant pageAskedAt = 0;
  bool havePage = false;
  uint32_t nextEntries = kPageEntriesFirst;
};

using DirHandlePtr = std::shared_ptr<DirHandle>;

// What the kernel has is a reference of its own: the answer of the MDS may come after the directory
// was closed, if the reader was killed.
const DirHandlePtr& handleOf(fuse_file_info* file) {
  return *reinterpret_cast<DirHandlePtr*>(file->fh);
}

void opendir(fuse_req_t req, fuse_ino_t id, fuse_file_info* file) {
  auto request = Request::begin(req, false);
  auto handle = std::make_unique<DirHandlePtr>(std::make_shared<DirHandle>());
  auto inode = request->client().inodes().obtain(inodeOf(req, id));
  (*handle)->inode = inode;
  request->client().inodes().addHandle(inode, false);
  file->fh = reinterpret_cast<uint64_t>(handle.get());
  if (request->opened(*file))
    handle.release();
  else
    request->client().files().close(inode, false);
}

void releasedir(fuse_req_t req, fuse_ino_t, fuse_file_info* file) {
  auto request = Request::begin(req, false);
  std::unique_ptr<const DirHandlePtr> handle(&handleOf(file));
  request->client().files().close((*handle)->inode, false);
  request->error(0);
}

// One reply to READDIR or READDIRPLUS being put together.
class DirReply {
 public:
  DirReply(RequestPtr request, size_t bytesMax, bool plus, Coherence::Answering& answering)
      : request_(std::move(request)),
        client_(request_->client()),
        plus_(plus),
        answering_(answering) {
    bytes_.resize(bytesMax);
  }

  // False: no room.
  bool addDots(const DirHandle& handle, uint64_t& cookie) {
    InodeId parent;
    {
      std::lock_guard lock(handle.inode->mutex);
      parent = handle.inode->parent;
    }
    if (cookie < kCookieDot) {
      if (!addPlain(".", handle.inode->id, S_IFDIR, kCookieDot)) return false;
      cookie = kCookieDot;
    }
    if (cookie < kCookieDotDot) {
      auto up = parent == kNoInode ? handle.inode->id : parent;
      if (!addPlain("..", up, S_IFDIR, kCookieDotDot)) return false;
      cookie = kCookieDotDot;
    }
    return true;
  }

  bool add(const DirEntry& entry, InodeId directory, Instant askedAt) {
    if (!plus_)
      return addPlain(entry.name.c_str(), entry.node.attributes.inode, entry.node.attributes.mode,
                      entry.cookie);
    auto& inodes = client_.inodes();
    auto inode = inodes.obtain(entry.node.attributes.inode);
    auto taken = inodes.take(*inode, entry.node, askedAt);
    fuse_entry_param param{};
    param.ino = inodes.nodeOf(inode->id);
    param.attr = toStat(taken.attributes);
    if (answering_.mayCache()) {
      param.entry_timeout = client_.nameTimeout();
      param.attr_timeout = taken.current ? Coherence::kForeverSeconds : 0.0;
    }
    size_t size =
        fuse_add_direntry_plus(request_->raw(), bytes_.data() + used_, room(), entry.name.c_str(),
                               &param, static_cast<off_t>(entry.cookie));
    if (size > room()) return false;
    used_ += size;
    inodes.setParent(*inode, directory);
    inodes.addLookup(inode);
    lookedUp_.push_back(inode->id);
    return true;
  }

  void send() {
    if (request_->bytes(std::as_bytes(std::span(bytes_.data(), used_)))) return;
    for (auto id : lookedUp_) client_.inodes().forget(id, 1);
  }

 private:
  size_t room() const { return bytes_.size() - used_; }

  bool addPlain(const char* name, InodeId inode, uint32_t mode, uint64_t cookie) {
    size_t size;
    if (plus_) {
      fuse_entry_param param{};  // ino 0: the kernel makes no inode of it
      param.attr.st_ino = inode.value;
      param.attr.st_mode = mode;
      size = fuse_add_direntry_plus(request_->raw(), bytes_.data() + used_, room(), name, &param,
                                    static_cast<off_t>(cookie));
    } else {
      struct stat attributes{};
      attributes.st_ino = inode.value;
      attributes.st_mode = mode;
      size = fuse_add_direntry(request_->raw(), bytes_.data() + used_, room(), name, &attributes,
                               static_cast<off_t>(cookie));
    }
    if (size > room()) return false;
    used_ += size;
    return true;
  }

  RequestPtr request_;
  Client& client_;
  bool plus_;
  Coherence::Answering& answering_;
  std::string bytes_;
  size_t used_ = 0;
  std::vector<InodeId> lookedUp_;
};

// The entries of the page after `cookie`; nullopt: the page cannot say. handle.mutex held.
std::optional<std::span<const DirEntry>> entriesAfter(DirHandle& handle, uint64_t cookie) {
  std::span<const DirEntry> entries(handle.page.entries);
  if (cookie <= kCookieDotDot) cookie = 0;
  if (cookie == handle.pageCookie) return entries;
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].cookie == cookie) return entries.subspan(i + 1);
  return std::nullopt;
}

bool pageIsCurrent(Client& client, DirHandle& handle) {
  if (!handle.havePage || !client.coherence().mayCache()) return false;
  std::lock_guard lock(handle.inode->mutex);
  return handle.inode->changedAt <= handle.pageAskedAt;
}

// Replies from the page, if it holds what follows `cookie`. handle.mutex held.
bool replyFromPage(const RequestPtr& request, DirHandle& handle, size_t size, uint64_t cookie,
                   bool plus) {
  auto entries = entriesAfter(handle, cookie);
  if (!entries || (entries->empty() && !handle.page.end)) return false;
  Coherence::Answering answering(request->client().coherence());
  DirReply reply(request, size, plus, answering);
  bool room = reply.addDots(handle, cookie);
  for (auto& entry : *entries)
    if (!room || !(room = reply.add(entry, handle.inode->id, handle.pageAskedAt))) break;
  reply.send();
  return true;
}

void fetchPage(const RequestPtr& request, const DirHandlePtr& handle, size_t size, uint64_t cookie,
               bool plus) {
  auto& client = request->client();
  uint64_t after = cookie <= kCookieDotDot ? 0 : cookie;
  auto askedAt = client.inodes().now();
  uint32_t entries = handle->nextEntries;
  handle->nextEntries = std::min(entries * 2, kPageEntriesMax);
  client.mds().readdir(handle->inode->id, after, entries, [=](Result<DirPage> page) {
    if (!page) return request->error(page.error().code());
    std::lock_guard lock(handle->mutex);
    handle->page = std::move(*page);
    handle->pageCookie = after;
    handle->pageAskedAt = askedAt;
    handle->havePage = true;
    if (!replyFromPage(request, *handle, size, cookie, plus))
      request->error(EIO);  // an empty page that is not the end
  });
}

void readEntries(fuse_req_t req, size_t size, off_t offset, fuse_file_info* file, bool plus) {
  auto request = Request::begin(req);
  auto handle = handleOf(file);
  auto cookie = static_cast<uint64_t>(offset);
  std::lock_guard lock(handle->mutex);
  if (pageIsCurrent(request->client(), *handle) &&
      replyFromPage(request, *handle, size, cookie, plus))
    return;
  fetchPage(request, handle, size, cookie, plus);
}

void readdir(fuse_req_t req, fuse_ino_t, size_t size, off_t offset, fuse_file_info* file) {
  readEntries(req, size, offset, file, false);
}

void readdirplus(fuse_req_t req, fuse_ino_t, size_t size, off_t offset, fuse_file_info* file) {
  readEntries(req, size, offset, file, true);
}

// Every change of a directory was durable when it was answered.
void fsyncdir(fuse_req_t req, fuse_ino_t, int, fuse_file_info*) {
  fuse_reply_err(req, 0);
}

}  // namespace

void addDirOps(fuse_lowlevel_ops& ops) {
  ops.opendir = opendir;
  ops.releasedir = releasedir;
  ops.readdir = readdir;
  ops.readdirplus = readdirplus;
  ops.fsyncdir = fsyncdir;
}

}  // namespace trainfs::client
