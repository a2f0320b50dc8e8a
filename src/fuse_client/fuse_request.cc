#include "fuse_client/fuse_request.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstring>

#include "fuse_client/client.h"
#include "fuse_client/fuse_counting.h"

namespace trainfs::client {

namespace {

constexpr uint32_t kGroupsMax = 65536;         // NGROUPS_MAX
constexpr uint32_t kPreferredBytes = 1 << 20;  // st_blksize

// Of the handler that runs on this thread.
thread_local RequestPtr begun;

}  // namespace

struct stat toStat(const Attributes& attributes) {
  struct stat result{};
  result.st_ino = attributes.inode.value;
  result.st_mode = attributes.mode;
  result.st_nlink = attributes.links;
  result.st_uid = attributes.uid;
  result.st_gid = attributes.gid;
  result.st_rdev = attributes.device;
  result.st_size = static_cast<off_t>(attributes.sizeBytes);
  result.st_blksize = kPreferredBytes;
  result.st_blocks = static_cast<blkcnt_t>((attributes.usedBytes + 511) / 512);
  result.st_atim = {attributes.atime.seconds, attributes.atime.nanoseconds};
  result.st_mtim = {attributes.mtime.seconds, attributes.mtime.nanoseconds};
  result.st_ctim = {attributes.ctime.seconds, attributes.ctime.nanoseconds};
  return result;
}

RequestPtr Request::begin(fuse_req_t raw, bool interruptible) {
  auto& client = *static_cast<Client*>(fuse_req_userdata(raw));
  auto request = std::make_shared<Request>(raw, client);
  request->caller_ = fuse_req_ctx(raw)->pid;
  request->kind_ = requestBeginning();
  request->interruptible_ = interruptible && request->caller_ != 0;
  if (request->interruptible_) begun = request;
  return request;
}

void Request::handlerReturned() {
  if (auto request = std::move(begun)) request->client_.inFlight().enter(*request);
}

Request::~Request() {
  error(EIO);
}  // dropped unanswered: the mount ends

bool Request::claim(int error) {
  if (answered_.exchange(true)) return false;
  if (interruptible_) client_.inFlight().leave(*this);
  auto took = std::chrono::steady_clock::now() - begunAt_;
  client_.statistics().of(kind_).add(took, error != 0);
  place_.reset();
  return true;
}

void Request::giveUp() {
  std::function<void()> hook;
  {
    std::lock_guard lock(giveUpMutex_);
    givenUp_ = true;
    hook.swap(giveUpHook_);
  }
  if (hook) hook();
  error(EINTR);
}

bool Request::onGiveUp(std::function<void()> hook) {
  std::lock_guard lock(giveUpMutex_);
  if (givenUp_) return false;
  giveUpHook_ = std::move(hook);
  return true;
}

void Request::change(std::function<void(Fate)> start) {
  auto& abandoned = client_.abandonedChanges();
  abandoned.afterAll([self = shared_from_this(), &abandoned, start = std::move(start)] {
    // Of the end of the change and the death of its caller, whichever comes second sees the other.
    auto first = std::make_shared<std::atomic_flag>();
    bool wanted = self->onGiveUp([first, &abandoned, &names = self->client_.invalidator()] {
      abandoned.add();
      names.expireNames();
      if (first->test_and_set()) abandoned.settled();
    });
    if (!wanted) return;
    start(Fate(nullptr, [first, &abandoned](void*) {
      if (first->test_and_set()) abandoned.settled();
    }));
  });
}

Identity Request::identity(Groups groups) const {
  auto* context = fuse_req_ctx(request_);
  Identity result{.uid = context->uid, .gid = context->gid, .groups = {}};
  if (groups == Groups::kNo) return result;
  result.groups.resize(64);
  int count =
      fuse_req_getgroups(request_, static_cast<int>(result.groups.size()), result.groups.data());
  if (count > static_cast<int>(result.groups.size())) {
    result.groups.resize(std::min<uint32_t>(count, kGroupsMax));
    count =
        fuse_req_getgroups(request_, static_cast<int>(result.groups.size()), result.groups.data());
  }
  result.groups.resize(std::clamp<int>(count, 0, static_cast<int>(result.groups.size())));
  return result;
}

void Request::execute(Identity identity, Operation op, Answer<Outcome> answer) {
  change([self = shared_from_this(), identity = std::move(identity), op = std::move(op),
          answer = std::move(answer)](Fate fate) mutable {
    auto run = [self, answer = std::move(answer), fate](Result<Outcome> outcome) {
      bool late = self->answered() && outcome.ok();
      answer(std::move(outcome));
      if (!late) return;
      self->client_.inodes().forgetAll();
      self->client_.invalidator().invalidateAll([] {});
    };
    self->client_.mds().execute(std::move(identity), std::move(op), std::move(run));
  });
}

void Request::create(CreateOp op, Answer<Outcome> answer) {
  op.umask = fuse_req_ctx(request_)->umask;
  auto groups = op.mode & S_ISGID ? Groups::kYes : Groups::kNo;
  execute(identity(groups), std::move(op), std::move(answer));
}

void Request::error(int code) {
  if (claim(code)) fuse_reply_err(request_, code);
}

bool Request::succeed() {
  return claim() && fuse_reply_err(request_, 0) == 0;
}

void Request::none() {
  if (claim()) fuse_reply_none(request_);
}

fuse_entry_param Request::entryOf(Inode& inode, const Inodes::Taken& taken, bool mayCache) const {
  fuse_entry_param entry{};
  entry.ino = client_.inodes().nodeOf(inode.id);
  entry.generation = 0;  // numbers are never reused
  entry.attr = toStat(taken.attributes);
  if (mayCache) {
    entry.entry_timeout = client_.nameTimeout();
    entry.attr_timeout = taken.current ? Coherence::kForeverSeconds : 0.0;
  }
  return entry;
}

void Request::entry(const InodePtr& inode, const Inodes::Taken& taken) {
  if (!claim()) return;
  client_.inodes().addLookup(inode);
  Coherence::Answering answering(client_.coherence());
  auto entry = entryOf(*inode, taken, answering.mayCache());
  if (fuse_reply_entry(request_, &entry) != 0) client_.inodes().forget(inode->id, 1);
}

void Request::noEntry() {
  if (!claim()) return;
  Coherence::Answering answering(client_.coherence());
  if (!answering.mayCache() || client_.nameTimeout() == 0.0) {
    fuse_reply_err(request_, ENOENT);
    return;
  }
  fuse_entry_param entry{};
  entry.entry_timeout = client_.nameTimeout();
  fuse_reply_entry(request_, &entry);
}

bool Request::created(const InodePtr& inode, const Inodes::Taken& taken, const fuse_file_info& file,
                      const Coherence::Answering& answering) {
  if (!claim()) return false;
  client_.inodes().addLookup(inode);
  auto entry = entryOf(*inode, taken, answering.mayCache());
  if (fuse_reply_create(request_, &entry, &file) == 0) return true;
  client_.inodes().forget(inode->id, 1);
  return false;
}

bool Request::opened(const fuse_file_info& file) {
  return claim() && fuse_reply_open(request_, &file) == 0;
}

void Request::attributes(const Inodes::Taken& taken) {
  if (!claim()) return;
  auto attributes = toStat(taken.attributes);
  Coherence::Answering answering(client_.coherence());
  fuse_reply_attr(request_, &attributes, taken.current ? answering.timeout() : 0.0);
}

void Request::link(const std::string& target) {
  if (claim()) fuse_reply_readlink(request_, target.c_str());
}

bool Request::bytes(std::span<const std::byte> data) {
  if (kind_ == RequestKind::kRead) client_.statistics().bytesRead += data.size();
  return claim() &&
         fuse_reply_buf(request_, reinterpret_cast<const char*>(data.data()), data.size()) == 0;
}

void Request::written(size_t bytes) {
  client_.statistics().bytesWritten += bytes;
  if (claim()) fuse_reply_write(request_, bytes);
}

void Request::statfs(const FsStats& stats) {
  if (!claim()) return;
  struct statvfs reply{};
  reply.f_bsize = kPreferredBytes;
  reply.f_frsize = 4096;
  reply.f_blocks = stats.totalBytes / reply.f_frsize;
  reply.f_bfree = stats.freeBytes / reply.f_frsize;
  reply.f_bavail = stats.availableBytes / reply.f_frsize;
  reply.f_files = stats.files;
  reply.f_ffree = reply.f_favail = stats.freeFiles;
  reply.f_namemax = kNameBytesMax;
  fuse_reply_statfs(request_, &reply);
}

void Request::lock(const std::optional<FileLock>& found) {
  if (!claim()) return;
  struct flock reply{};
  reply.l_type = F_UNLCK;
  if (found) {
    reply.l_type = found->mode == LockMode::kExclusive ? F_WRLCK : F_RDLCK;
    reply.l_start = static_cast<off_t>(found->range.first);
    bool toEnd = found->range.last == kLockLastByte;
    reply.l_len = toEnd ? 0 : static_cast<off_t>(found->range.last - found->range.first + 1);
    reply.l_pid = static_cast<pid_t>(found->process);
  }
  fuse_reply_lock(request_, &reply);
}

void Request::xattr(const std::string& value, size_t size) {
  if (!claim()) return;
  if (size == 0)
    fuse_reply_xattr(request_, value.size());
  else if (value.size() > size)
    fuse_reply_err(request_, ERANGE);
  else
    fuse_reply_buf(request_, value.data(), value.size());
}

InodeId inodeOf(fuse_req_t request, fuse_ino_t node) {
  return static_cast<Client*>(fuse_req_userdata(request))->inodes().ofNode(node);
}

}  // namespace trainfs::client
