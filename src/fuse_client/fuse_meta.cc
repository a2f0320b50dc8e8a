// FUSE handlers for names and attributes.
#include <stdio.h>
#include <sys/stat.h>

#include <cstring>

#include "fuse_client/client.h"
#include "fuse_client/fuse_ops.h"
#include "fuse_client/fuse_request.h"

namespace trainfs::client {

namespace {

// More open files than this and an unlink asks for the inode behind the name instead of naming all
// of them.
constexpr size_t kKeepOpenMax = 32;

void lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  auto request = Request::begin(req);
  auto& client = request->client();
  auto askedAt = client.inodes().now();
  InodeId directory = inodeOf(req, parent);
  bool named = std::strcmp(name, ".") != 0 && std::strcmp(name, "..") != 0;
  auto found = [request, askedAt, directory, named](Result<Node> node) {
    if (!node) {
      if (node.error() == Errno(ENOENT)) return request->noEntry();
      return request->error(node.error().code());
    }
    auto& inodes = request->client().inodes();
    auto inode = inodes.obtain(node->attributes.inode);
    auto taken = inodes.take(*inode, *node, askedAt);
    if (named) inodes.setParent(*inode, directory);
    if (taken.current) return request->entry(inode, taken);
    // Something has changed meanwhile, or has to be told first: the newest there is.
    request->client().files().attributes(inode, [request, inode](Result<Inodes::Taken> newest) {
      if (!newest) return request->error(newest.error().code());
      request->entry(inode, *newest);
    });
  };
  // After what killed callers may have left under way: names are what they change.
  client.abandonedChanges().afterAll([request, directory, name = std::string(name), found] {
    if (request->answered()) return;
    // "." comes with file handles (open_by_handle_at) of inodes that the kernel has forgotten.
    auto& mds = request->client().mds();
    if (name == ".")
      mds.getattr(directory, found);
    else
      mds.lookup(directory, name, found);
  });
}

void getattr(fuse_req_t req, fuse_ino_t id, fuse_file_info*) {
  auto request = Request::begin(req);
  auto& client = request->client();
  auto inode = client.inodes().obtain(inodeOf(req, id));
  client.files().attributes(inode, [request, inode](Result<Inodes::Taken> taken) {
    if (!taken) return request->error(taken.error().code());
    request->attributes(*taken);
  });
}

SetAttrOp decodeSetAttr(InodeId inode, const struct stat& attr, int valid) {
  SetAttrOp op{.inode = inode};
  static constexpr std::pair<int, uint32_t> kBits[] = {
      {FUSE_SET_ATTR_MODE, kSetMode},
      {FUSE_SET_ATTR_UID, kSetUid},
      {FUSE_SET_ATTR_GID, kSetGid},
      {FUSE_SET_ATTR_SIZE, kSetSize},
      {FUSE_SET_ATTR_KILL_SUID, kKillPrivileges},  // the kernel's FATTR_KILL_SUIDGID
  };
  for (auto [fuseBit, bit] : kBits)
    if (valid & fuseBit) op.mask |= bit;
  if (valid & FUSE_SET_ATTR_ATIME)
    op.mask |= valid & FUSE_SET_ATTR_ATIME_NOW ? kSetAtimeNow : kSetAtime;
  if (valid & FUSE_SET_ATTR_MTIME)
    op.mask |= valid & FUSE_SET_ATTR_MTIME_NOW ? kSetMtimeNow : kSetMtime;
  op.mode = attr.st_mode & 07777;
  op.uid = attr.st_uid;
  op.gid = attr.st_gid;
  op.sizeBytes = static_cast<uint64_t>(attr.st_size);
  op.atime = {attr.st_atim.tv_sec, static_cast<uint32_t>(attr.st_atim.tv_nsec)};
  op.mtime = {attr.st_mtim.tv_sec, static_cast<uint32_t>(attr.st_mtim.tv_nsec)};
  return op;
}

void setattr(fuse_req_t req, fuse_ino_t id, struct stat* attr, int valid, fuse_file_info*) {
  auto request = Request::begin(req);
  auto& client = request->client();
  auto inode = client.inodes().obtain(inodeOf(req, id));
  auto op = decodeSetAttr(inode->id, *attr, valid);
  auto done = [request, inode](Result<Inodes::Taken> taken) {
    if (!taken) return request->error(taken.error().code());
    // The caller was killed, and the kernel may have asked again before it happened.
    if (request->answered()) request->client().invalidator().invalidateAttributes(inode->id, [] {});
    request->attributes(*taken);
  };
  if (op.mask == 0)
    return client.files().attributes(inode, done);  // a ctime of the kernel's own: ours is better
  // The set-group-ID bit depends on the caller's groups.
  auto groups =
      (op.mask & kSetMode) && (op.mode & S_ISGID) ? Request::Groups::kYes : Request::Groups::kNo;
  request->change([=, identity = request->identity(groups)](Request::Fate fate) {
    request->client().files().setAttributes(
        inode, identity, op, [done, fate](Result<Inodes::Taken> taken) { done(std::move(taken)); });
  });
}

void readlink(fuse_req_t req, fuse_ino_t id) {
  auto request = Request::begin(req);
  request->client().mds().readlink(inodeOf(req, id), [request](Result<std::string> target) {
    if (!target) return request->error(target.error().code());
    request->link(*target);
  });
}

// ---- making names ----

void makeNode(fuse_req_t req, CreateOp op) {
  auto request = Request::begin(req);
  auto parent = op.parent;
  request->create(std::move(op), [request, parent](Result<Outcome> outcome) {
    auto& inodes = request->client().inodes();
    inodes.forgetState(parent);
    if (!outcome) return request->error(outcome.error().code());
    if (!outcome->node) return request->error(EIO);
    auto inode = inodes.obtain(outcome->node->attributes.inode);
    auto taken = inodes.takeChange(*inode, *outcome->node);
    inodes.setParent(*inode, parent);
    request->entry(inode, taken);
  });
}

void mknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  makeNode(req, {.parent = inodeOf(req, parent), .name = name, .mode = mode, .device = device});
}

void mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  makeNode(req, {.parent = inodeOf(req, parent), .name = name, .mode = (mode & 07777) | S_IFDIR});
}

void symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name) {
  makeNode(
      req,
      {.parent = inodeOf(req, parent), .name = name, .mode = S_IFLNK | 0777, .target = target});
}

void link(fuse_req_t req, fuse_ino_t id, fuse_ino_t newParent, const char* name) {
  auto request = Request::begin(req);
  LinkOp op{.inode = inodeOf(req, id), .parent = inodeOf(req, newParent), .name = name};
  request->execute(request->identity(), op, [request, parent = op.parent](Result<Outcome> outcome) {
    auto& inodes = request->client().inodes();
    inodes.forgetState(parent);
    if (!outcome) return request->error(outcome.error().code());
    if (!outcome->node) return request->error(EIO);
    auto inode = inodes.obtain(outcome->node->attributes.inode);
    request->entry(inode, inodes.takeChange(*inode, *outcome->node));
  });
}

// ---- removing names ----

// Calls `next` with the open inodes among which the one behind the name is, if it is open here.
void withOpenInodes(const RequestPtr& request, InodeId parent, const std::string& name,
                    std::function<void(std::vector<InodeId>)> next) {
  auto& client = request->client();
  if (auto all = client.inodes().openInodes(kKeepOpenMax)) return next(std::move(*all));
  client.mds().lookup(parent, name,
                      [&inodes = client.inodes(), next = std::move(next)](Result<Node> node) {
                        std::vector<InodeId> open;
                        if (node && inodes.isOpen(node->attributes.inode))
                          open.push_back(node->attributes.inode);
                        next(std::move(open));
                      });
}

// The inode that lost a name, if it lives on.
void noteUnlinked(Client& client, const Outcome& outcome) {
  if (!outcome.node) return;
  auto inode = client.inodes().find(outcome.node->attributes.inode);
  if (!inode) return;
  client.inodes().takeChange(*inode, *outcome.node);
  client.files().noteUnlinked(inode);
}

template <typename Op>
void removeName(fuse_req_t req, fuse_ino_t parent, const char* name) {
  auto request = Request::begin(req);
  Op op{.parent = inodeOf(req, parent), .name = name, .keepOpen = {}};
  auto identity = request->identity();
  withOpenInodes(request, op.parent, op.name, [=](std::vector<InodeId> open) mutable {
    op.keepOpen = std::move(open);
    request->execute(identity, op, [request, parent = op.parent](Result<Outcome> outcome) {
      request->client().inodes().forgetState(parent);
      if (outcome) noteUnlinked(request->client(), *outcome);
      request->error(outcome.errnoOrZero());
    });
  });
}

void rename(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t newParent,
            const char* newName, unsigned flags) {
  auto request = Request::begin(req);
  if (flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE)) return request->error(EINVAL);
  RenameOp op{.parent = inodeOf(req, parent),
              .name = name,
              .newParent = inodeOf(req, newParent),
              .newName = newName,
              .noReplace = (flags & RENAME_NOREPLACE) != 0,
              .exchange = (flags & RENAME_EXCHANGE) != 0};
  auto identity = request->identity();
  withOpenInodes(request, op.newParent, op.newName, [=](std::vector<InodeId> open) mutable {
    op.keepOpen = std::move(open);
    request->execute(identity, op, [request, op](Result<Outcome> outcome) {
      auto& inodes = request->client().inodes();
      inodes.forgetState(op.parent);
      inodes.forgetState(op.newParent);
      if (!outcome) return request->error(outcome.error().code());
      if (outcome->node) {
        auto moved = inodes.obtain(outcome->node->attributes.inode);
        inodes.takeChange(*moved, *outcome->node);
        inodes.setParent(*moved, op.newParent);
      }
      // What was replaced or exchanged is not in the answer; what is known of it may be out of
      // date.
      for (auto id : op.keepOpen) request->client().files().noteReplaced(id);
      if (op.exchange)
        inodes.forgetAll();
      else if (!op.noReplace)
        inodes.forgetHardLinked();
      request->error(0);
    });
  });
}

}  // namespace

void addMetaOps(fuse_lowlevel_ops& ops) {
  ops.lookup = lookup;
  ops.getattr = getattr;
  ops.setattr = setattr;
  ops.readlink = readlink;
  ops.mknod = mknod;
  ops.mkdir = mkdir;
  ops.symlink = symlink;
  ops.link = link;
  ops.unlink = removeName<UnlinkOp>;
  ops.rmdir = removeName<RmdirOp>;
  ops.rename = rename;
}

}  // namespace trainfs::client
