#include "fuse_client/mds_wire.h"

#include <kj/debug.h>
#include <linux/limits.h>

#include "striping/layout_record.h"
#include "trainfs/target.h"

namespace trainfs::client {

namespace {

Time decodeTime(rpc::Time::Reader reader) {
  return {reader.getSeconds(), reader.getNanoseconds()};
}

void encodeTime(Time time, rpc::Time::Builder builder) {
  builder.setSeconds(time.seconds);
  builder.setNanoseconds(time.nanoseconds);
}

Attributes decodeAttributes(rpc::Attributes::Reader reader) {
  return {.inode = InodeId{reader.getInode()},
          .mode = reader.getMode(),
          .uid = reader.getUid(),
          .gid = reader.getGid(),
          .links = reader.getLinks(),
          .sizeBytes = reader.getSizeBytes(),
          .usedBytes = reader.getUsedBytes(),
          .device = reader.getDevice(),
          .flags = reader.getFlags(),
          .atime = decodeTime(reader.getAtime()),
          .mtime = decodeTime(reader.getMtime()),
          .ctime = decodeTime(reader.getCtime()),
          .btime = decodeTime(reader.getBtime()),
          .settings = reader.getSettings(),
          .acls = reader.getAcls()};
}

std::string toString(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

capnp::Data::Reader toData(const std::string& bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

// Text readers are terminated, and a name of the kernel or of this program never holds a NUL.
capnp::Text::Reader toText(const std::string& text) {
  return {text.c_str(), text.size()};
}

void encodeKept(const std::vector<InodeId>& kept, capnp::List<uint64_t>::Builder builder) {
  for (uint32_t i = 0; i < kept.size(); ++i) builder.set(i, kept[i].value);
}

void encodeUnlink(const std::string& name, InodeId parent, const std::vector<InodeId>& keepOpen,
                  rpc::Unlink::Builder builder) {
  builder.setParent(parent.value);
  builder.setName(toText(name));
  encodeKept(keepOpen, builder.initKeepOpen(keepOpen.size()));
}

struct OperationEncoder {
  rpc::Operation::Builder to;

  void operator()(const CreateOp& op) {
    auto builder = to.initCreate();
    builder.setParent(op.parent.value);
    builder.setName(toText(op.name));
    builder.setMode(op.mode);
    builder.setUmask(op.umask);
    builder.setDevice(op.device);
    builder.setTarget(toData(op.target));
    builder.setExclusive(true);  // see createFile in fuse_file.cc
    builder.setWriting(op.opening == Opening::kWriting);
    builder.setOpening(op.opening == Opening::kReading);
    builder.setUnnamed(op.unnamed);
    builder.setLinkable(op.linkable);
  }
  void operator()(const LinkOp& op) {
    auto builder = to.initLink();
    builder.setInode(op.inode.value);
    builder.setParent(op.parent.value);
    builder.setName(toText(op.name));
  }
  void operator()(const UnlinkOp& op) {
    encodeUnlink(op.name, op.parent, op.keepOpen, to.initUnlink());
  }
  void operator()(const RmdirOp& op) {
    encodeUnlink(op.name, op.parent, op.keepOpen, to.initRmdir());
  }
  void operator()(const RenameOp& op) {
    auto builder = to.initRename();
    builder.setParent(op.parent.value);
    builder.setName(toText(op.name));
    builder.setNewParent(op.newParent.value);
    builder.setNewName(toText(op.newName));
    builder.setNoReplace(op.noReplace);
    builder.setExchange(op.exchange);
    encodeKept(op.keepOpen, builder.initKeepOpen(op.keepOpen.size()));
  }
  void operator()(const SetAttrOp& op) {
    auto builder = to.initSetattr();
    builder.setInode(op.inode.value);
    builder.setMask(op.mask);
    builder.setMode(op.mode);
    builder.setUid(op.uid);
    builder.setGid(op.gid);
    builder.setSizeBytes(op.sizeBytes);
    encodeTime(op.atime, builder.initAtime());
    encodeTime(op.mtime, builder.initMtime());
    builder.setKeepBytes(op.keepBytes);
  }
  void operator()(const SetXattrOp& op) {
    auto builder = to.initSetxattr();
    builder.setInode(op.inode.value);
    builder.setName(toText(op.name));
    builder.setValue(toData(op.value));
    builder.setCreate(op.create);
    builder.setReplace(op.replace);
  }
  void operator()(const RemoveXattrOp& op) {
    auto builder = to.initRemovexattr();
    builder.setInode(op.inode.value);
    builder.setName(toText(op.name));
  }
  void operator()(const ReportOp& op) {
    auto builder = to.initReport();
    builder.setInode(op.inode.value);
    builder.setSizeBytes(op.sizeBytes);
    builder.setUsedBytes(op.usedBytes);
    encodeTime(op.mtime, builder.initMtime());
    auto exists = builder.initExists(op.exists.size());
    for (uint32_t i = 0; i < op.exists.size(); ++i) {
      exists[i].setComponent(op.exists[i].first);
      exists[i].setStripe(op.exists[i].second);
    }
    builder.setStillWriting(op.stillWriting);
    builder.setKillPrivileges(op.killPrivileges);
    builder.setSettings(op.settings);
    builder.setOvertaken(op.overtaken);
  }
};

}  // namespace

Node decodeNode(rpc::Node::Reader reader) {
  Node node{.attributes = decodeAttributes(reader.getAttributes()), .layout = nullptr};
  KJ_REQUIRE(node.attributes.inode != kNoInode, "the MDS answered without an inode");
  auto bytes = reader.getLayout();
  if (bytes.size() != 0) {
    auto layout =
        striping::decodeLayout({reinterpret_cast<const char*>(bytes.begin()), bytes.size()});
    KJ_REQUIRE(layout.ok(), "the MDS sent a damaged layout", node.attributes.inode.value);
    node.layout = std::make_shared<const Layout>(std::move(*layout));
  }
  return node;
}

DirPage decodePage(capnp::List<rpc::Entry>::Reader entries, bool end, uint32_t entriesMax) {
  KJ_REQUIRE(entries.size() <= entriesMax, "the MDS sent more entries than it was asked for",
             entries.size(), entriesMax);
  DirPage page{.entries = {}, .end = end};
  page.entries.reserve(entries.size());
  for (auto entry : entries)
    page.entries.push_back(
        {toString(entry.getName()), entry.getCookie(), decodeNode(entry.getNode())});
  return page;
}

std::vector<std::string> decodeXattrNames(capnp::List<capnp::Text>::Reader names) {
  KJ_REQUIRE(names.size() <= XATTR_LIST_MAX / 2, "the MDS sent more names than fit into a list",
             names.size());
  std::vector<std::string> result;
  for (auto name : names) result.push_back(toString(name));
  return result;
}

NamesPage decodeNames(rpc::Session::NamesResults::Reader reader) {
  KJ_REQUIRE(reader.getNames().size() <= kNamesPerPage, "the MDS sent a page of too many names",
             reader.getNames().size());
  auto next = reader.getNext();
  NamesPage page{.names = {}, .end = reader.getEnd(), .next = {next.getParent(), next.getPlace()}};
  for (auto name : reader.getNames())
    page.names.push_back({{name.getParent()}, toString(name.getName()), toString(name.getPath())});
  return page;
}

ClusterMap decodeMap(rpc::ClusterMap::Reader reader) {
  KJ_REQUIRE(reader.getOsts().size() <= kOstIndexMax + 1, "the MDS sent a map of too many OSTs",
             reader.getOsts().size());
  ClusterMap map{
      .version = reader.getVersion(), .fsname = toString(reader.getFsname()), .osts = {}};
  for (auto ost : reader.getOsts()) {
    OstAddress address{.index = ost.getIndex(),
                       .uuid = toString(ost.getUuid()),
                       .host = toString(ost.getHost()),
                       .ports = {},
                       .chainVersion = ost.getChainVersion(),
                       .active = ost.getActive()};
    KJ_REQUIRE(ost.getPorts().size() <= kOstPortsMax, "the MDS sent an OST of too many ports",
               ost.getIndex(), ost.getPorts().size());
    for (auto port : ost.getPorts()) address.ports.push_back(port);
    map.osts.push_back(std::move(address));
  }
  return map;
}

std::vector<InodeId> decodeInodes(capnp::List<uint64_t>::Reader inodes) {
  std::vector<InodeId> result;
  result.reserve(inodes.size());
  for (auto inode : inodes) result.push_back(InodeId{inode});
  return result;
}

FsStats decodeStats(rpc::FsStats::Reader reader) {
  return {reader.getTotalBytes(), reader.getFreeBytes(), reader.getAvailableBytes(),
          reader.getFiles(), reader.getFreeFiles()};
}

Outcome decodeOutcome(rpc::Reply::Reader reader) {
  if (!reader.hasNode() || reader.getNode().getAttributes().getInode() == 0) return {};
  return {decodeNode(reader.getNode())};
}

void encodeIdentity(const Identity& identity, rpc::Identity::Builder builder) {
  builder.setUid(identity.uid);
  builder.setGid(identity.gid);
  auto groups = builder.initGroups(identity.groups.size());
  for (uint32_t i = 0; i < identity.groups.size(); ++i) groups.set(i, identity.groups[i]);
}

void encodeOperation(const Operation& op, rpc::Operation::Builder builder) {
  std::visit(OperationEncoder{builder}, op);
}

void encodeLocks(const std::vector<FileLock>& locks, capnp::List<rpc::FileLock>::Builder builder) {
  for (uint32_t i = 0; i < locks.size(); ++i) encodeLock(locks[i], builder[i]);
}

FileLock requireLock(rpc::FileLock::Reader reader) {
  auto lock = decodeLock(reader);
  KJ_REQUIRE(lock.ok(), "a lock of no kind or range");
  return *lock;
}

void encodeOpens(const std::vector<OpenFile>& opens, capnp::List<rpc::OpenFile>::Builder builder) {
  for (uint32_t i = 0; i < opens.size(); ++i) {
    builder[i].setInode(opens[i].inode.value);
    builder[i].setWriting(opens[i].writing);
  }
}

}  // namespace trainfs::client
