#include "fuse_client/fuse_counting.h"

#include "fuse_client/fuse_request.h"

namespace trainfs::client {

namespace {

thread_local RequestKind beginning = RequestKind::kOther;

// A table of plain functions has no room for the function behind: one class for each.
template <RequestKind kKind, typename... Arguments>
struct Counted {
  static inline void (*handler)(fuse_req_t, Arguments...) = nullptr;
  static void run(fuse_req_t request, Arguments... arguments) {
    beginning = kKind;
    handler(request, arguments...);
    Request::handlerReturned();
    beginning = RequestKind::kOther;
  }
};

template <RequestKind kKind, typename... Arguments>
void wrap(void (*&slot)(fuse_req_t, Arguments...)) {
  using Wrapper = Counted<kKind, Arguments...>;
  if (slot == nullptr || slot == &Wrapper::run) return;
  Wrapper::handler = slot;
  slot = &Wrapper::run;
}

}  // namespace

RequestKind requestBeginning() {
  return beginning;
}

void countRequests(fuse_lowlevel_ops& ops) {
  using enum RequestKind;
  wrap<kLookup>(ops.lookup);
  wrap<kGetattr>(ops.getattr);
  wrap<kSetattr>(ops.setattr);
  wrap<kReadlink>(ops.readlink);
  wrap<kMknod>(ops.mknod);
  wrap<kMkdir>(ops.mkdir);
  wrap<kSymlink>(ops.symlink);
  wrap<kLink>(ops.link);
  wrap<kUnlink>(ops.unlink);
  wrap<kRmdir>(ops.rmdir);
  wrap<kRename>(ops.rename);
  wrap<kCreate>(ops.create);
  wrap<kCreate>(ops.tmpfile);
  wrap<kOpen>(ops.open);
  wrap<kRelease>(ops.release);
  wrap<kFlush>(ops.flush);
  wrap<kFsync>(ops.fsync);
  wrap<kRead>(ops.read);
  wrap<kWrite>(ops.write);
  wrap<kFallocate>(ops.fallocate);
  wrap<kOpendir>(ops.opendir);
  wrap<kReaddir>(ops.readdir);
  wrap<kReaddirplus>(ops.readdirplus);
  wrap<kReleasedir>(ops.releasedir);
  wrap<kGetxattr>(ops.getxattr);
  wrap<kSetxattr>(ops.setxattr);
  wrap<kListxattr>(ops.listxattr);
  wrap<kRemovexattr>(ops.removexattr);
  wrap<kStatfs>(ops.statfs);
  wrap<kGetlk>(ops.getlk);
  wrap<kSetlk>(ops.setlk);
  wrap<kFlock>(ops.flock);
  wrap<kOther>(ops.fsyncdir);
  wrap<kOther>(ops.ioctl);
}

}  // namespace trainfs::client
