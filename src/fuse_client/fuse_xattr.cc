// FUSE handlers for extended attributes.
#include <sys/xattr.h>

#include <cstring>

#include "fuse_client/client.h"
#include "fuse_client/fuse_ops.h"
#include "fuse_client/fuse_request.h"
#include "fuse_client/mount_attributes.h"
#include "striping/layout_text.h"
#include "trainfs/acl_names.h"

namespace trainfs::client {

namespace {

// Whatever else kernels keep among the names where ACLs are.
bool isUnsupported(const char* name) {
  return std::strncmp(name, "system.", 7) == 0 && !aclNamed(name);
}

// Of the names that the kernel itself asks for, 0 for others.
uint8_t absentBit(const char* name) {
  if (std::strcmp(name, "security.capability") == 0) return kNoCapability;
  if (std::strcmp(name, "security.selinux") == 0) return kNoSelinux;
  return 0;
}

// The kernel asks for the ACL of each file that somebody else than its owner uses, and for both at
// each `ls -l`; and keeps it until it asks for attributes again, which fgetxattr(2) does not. So
// while others may change it, it is told to keep nothing.
void getAcl(const RequestPtr& request, const InodePtr& inode, AclBits which, const char* name,
            size_t size) {
  auto& client = request->client();
  if (client.coherence().mayCache()) {
    std::unique_lock lock(inode->mutex);
    bool absent = inode->known && (inode->attributes.acls & which) == 0;
    lock.unlock();
    if (absent) return request->error(ENODATA);
  }
  client.mds().getxattr(inode->id, name, [request, inode, size](Result<std::string> value) {
    if (request->answered()) return;  // the caller is gone, and the kernel's inode may be going
    auto& client = request->client();
    if (!client.coherence().mayCache()) client.invalidator().forgetAcls(inode->id);
    if (!value) return request->error(value.error().code());
    request->xattr(*value, size);
  });
}

void getxattr(fuse_req_t req, fuse_ino_t id, const char* name, size_t size) {
  if (id == FUSE_ROOT_ID && std::string_view(name).starts_with(kMountAttributes))
    return mountAttribute(Request::begin(req), name, size);
  if (isUnsupported(name)) {
    fuse_reply_err(req, EOPNOTSUPP);
    return;
  }
  auto request = Request::begin(req);
  auto& client = request->client();
  auto inode = client.inodes().obtain(inodeOf(req, id));
  if (auto acl = aclNamed(name)) return getAcl(request, inode, *acl, name, size);
  uint8_t bit = absentBit(name);
  Instant askedAt = client.inodes().now();
  if (bit != 0 && client.coherence().mayCache()) {
    std::unique_lock lock(inode->mutex);
    bool absent = (inode->absentXattrs & bit) != 0;
    lock.unlock();
    if (absent) return request->error(ENODATA);
  }
  client.mds().getxattr(inode->id, name,
                        [request, inode, bit, askedAt, size](Result<std::string> value) {
                          if (value) return request->xattr(*value, size);
                          if (bit != 0 && value.error() == Errno(ENODATA)) {
                            std::lock_guard lock(inode->mutex);
                            if (inode->xattrsChangedAt <= askedAt) inode->absentXattrs |= bit;
                          }
                          request->error(value.error().code());
                        });
}

void listxattr(fuse_req_t req, fuse_ino_t id, size_t size) {
  auto request = Request::begin(req);
  request->client().mds().listxattr(inodeOf(req, id),
                                    [request, size](Result<std::vector<std::string>> names) {
                                      if (!names) return request->error(names.error().code());
                                      std::string list;
                                      for (auto& name : *names) list.append(name).push_back('\0');
                                      request->xattr(list, size);
                                    });
}

// Runs a change of an xattr, and forgets what it may have changed besides: ctime, for
// trainfs.layout the layout, for an ACL the mode. Keeps `pass` until it is done.
void change(const RequestPtr& request, InodeId id, Identity identity, Operation op,
            FileIo::Pass pass = nullptr) {
  auto& client = request->client();
  auto inode = client.inodes().obtain(id);
  auto touched = [&inodes = client.inodes(), inode] {
    std::lock_guard lock(inode->mutex);
    inode->absentXattrs = 0;
    inode->xattrsChangedAt = inodes.tick();
  };
  touched();
  request->execute(std::move(identity), std::move(op),
                   [request, inode, touched, pass](Result<Outcome> outcome) {
                     touched();
                     if (outcome && outcome->node)
                       request->client().inodes().takeChange(*inode, *outcome->node);
                     request->error(outcome.errnoOrZero());
                   });
}

// A file's layout can be set while it has no data, and what was written here the MDS may not know
// yet. The objects of a layout that is replaced are destroyed.
void changeLayout(const RequestPtr& request, InodeId id, SetXattrOp op) {
  auto& client = request->client();
  auto inode = client.inodes().obtain(id);
  client.files().exclusivelyReported(
      inode, [request, id, op = std::move(op)](Status reported, FileIo::Pass pass) {
        if (!reported) return request->error(reported.error().code());
        change(request, id, request->identity(), op, std::move(pass));
      });
}

void setxattr(fuse_req_t req, fuse_ino_t id, const char* name, const char* value, size_t size,
              int flags) {
  auto request = Request::begin(req);
  if (isUnsupported(name)) return request->error(EOPNOTSUPP);
  auto inode = inodeOf(req, id);
  SetXattrOp op{.inode = inode,
                .name = name,
                .value = std::string(value, size),
                .create = (flags & XATTR_CREATE) != 0,
                .replace = (flags & XATTR_REPLACE) != 0};
  if (op.name == striping::kLayoutXattr) return changeLayout(request, inode, std::move(op));
  // Who is not in the file's group loses its set-group-ID bit with the ACL.
  auto groups = aclNamed(name) ? Request::Groups::kYes : Request::Groups::kNo;
  change(request, inode, request->identity(groups), std::move(op));
}

void removexattr(fuse_req_t req, fuse_ino_t id, const char* name) {
  auto request = Request::begin(req);
  if (isUnsupported(name)) return request->error(EOPNOTSUPP);
  auto inode = inodeOf(req, id);
  change(request, inode, request->identity(), RemoveXattrOp{.inode = inode, .name = name});
}

}  // namespace

void addXattrOps(fuse_lowlevel_ops& ops) {
  ops.getxattr = getxattr;
  ops.listxattr = listxattr;
  ops.setxattr = setxattr;
  ops.removexattr = removexattr;
}

}  // namespace trainfs::client
