#include "mds/wire.h"

#include <sys/stat.h>

#include "striping/layout_record.h"

namespace trainfs::mds {

namespace {

std::string copy(capnp::Text::Reader in) {
  return std::string(text(in));
}
std::string copy(capnp::Data::Reader in) {
  return std::string(reinterpret_cast<const char*>(in.begin()), in.size());
}

Time decode(rpc::Time::Reader in) {
  return {in.getSeconds(), in.getNanoseconds()};
}

void encode(const Time& in, rpc::Time::Builder out) {
  out.setSeconds(in.seconds);
  out.setNanoseconds(in.nanoseconds);
}

void encode(const Attributes& in, rpc::Attributes::Builder out) {
  out.setInode(in.inode.value);
  out.setMode(in.mode);
  out.setUid(in.uid);
  out.setGid(in.gid);
  out.setLinks(in.links);
  out.setSizeBytes(in.sizeBytes);
  out.setUsedBytes(in.usedBytes);
  out.setDevice(in.device);
  out.setFlags(in.flags);
  encode(in.atime, out.initAtime());
  encode(in.mtime, out.initMtime());
  encode(in.ctime, out.initCtime());
  encode(in.btime, out.initBtime());
  out.setSettings(in.settings);
  out.setAcls(in.acls);
}

Status keepOpen(capnp::List<uint64_t>::Reader in, ChangeRequest& out) {
  if (in.size() > kKeepOpenMax) return Errno(E2BIG);
  for (uint64_t inode : in) out.keepOpen.push_back({inode});
  return Done{};
}

Status decodeCreate(rpc::Create::Reader in, ChangeRequest& out) {
  if (in.getName().size() > kNameBytesMax || in.getTarget().size() > kSymlinkBytesMax)
    return Errno(ENAMETOOLONG);
  if (in.getLayout().size() > kLayoutTextBytesMax) return Errno(E2BIG);
  out.op = CreateOp{.parent = {in.getParent()},
                    .name = copy(in.getName()),
                    .mode = in.getMode(),
                    .umask = in.getUmask(),
                    .device = in.getDevice(),
                    .target = copy(in.getTarget()),
                    .exclusive = in.getExclusive(),
                    .writing = in.getWriting(),
                    .unnamed = in.getUnnamed(),
                    .linkable = in.getLinkable()};
  out.layoutText = copy(in.getLayout());
  out.opening = in.getOpening() || in.getWriting();
  return Done{};
}

Status decodeRename(rpc::Rename::Reader in, ChangeRequest& out) {
  if (in.getName().size() > kNameBytesMax || in.getNewName().size() > kNameBytesMax)
    return Errno(ENAMETOOLONG);
  out.op = RenameOp{.parent = {in.getParent()},
                    .name = copy(in.getName()),
                    .newParent = {in.getNewParent()},
                    .newName = copy(in.getNewName()),
                    .noReplace = in.getNoReplace(),
                    .exchange = in.getExchange()};
  return keepOpen(in.getKeepOpen(), out);
}

SetAttrOp decodeSetAttr(rpc::SetAttr::Reader in) {
  return {.inode = {in.getInode()},
          .mask = in.getMask(),
          .mode = in.getMode(),
          .uid = in.getUid(),
          .gid = in.getGid(),
          .sizeBytes = in.getSizeBytes(),
          .atime = decode(in.getAtime()),
          .mtime = decode(in.getMtime()),
          .flags = in.getFlags(),
          .keepBytes = in.getKeepBytes()};
}

Status decodeSetXattr(rpc::SetXattr::Reader in, ChangeRequest& out) {
  if (in.getName().size() > kXattrNameBytesMax) return Errno(ERANGE);
  bool isLayout = text(in.getName()) == kLayoutXattr;
  if (in.getValue().size() > (isLayout ? kLayoutTextBytesMax : kXattrValueBytesMax))
    return Errno(E2BIG);
  out.op = SetXattrOp{.inode = {in.getInode()},
                      .name = copy(in.getName()),
                      .value = copy(in.getValue()),
                      .create = in.getCreate(),
                      .replace = in.getReplace()};
  return Done{};
}

Status decodeReport(rpc::Report::Reader in, ChangeRequest& out) {
  if (in.getExists().size() > kExistsMax) return Errno(E2BIG);
  ReportOp report{.inode = {in.getInode()},
                  .sizeBytes = in.getSizeBytes(),
                  .usedBytes = in.getUsedBytes(),
                  .mtime = decode(in.getMtime()),
                  .stillWriting = in.getStillWriting(),
                  .killPrivileges = in.getKillPrivileges(),
                  .settings = in.getSettings(),
                  .overtaken = in.getOvertaken()};
  for (auto object : in.getExists())
    report.exists.emplace_back(object.getComponent(), object.getStripe());
  out.op = std::move(report);
  return Done{};
}

}  // namespace

Status decode(rpc::Operation::Reader in, ChangeRequest& out) {
  switch (in.which()) {
    case rpc::Operation::CREATE:
      return decodeCreate(in.getCreate(), out);
    case rpc::Operation::LINK: {
      auto link = in.getLink();
      if (link.getName().size() > kNameBytesMax) return Errno(ENAMETOOLONG);
      out.op = LinkOp{{link.getInode()}, {link.getParent()}, copy(link.getName())};
      return Done{};
    }
    case rpc::Operation::UNLINK: {
      auto unlink = in.getUnlink();
      if (unlink.getName().size() > kNameBytesMax) return Errno(ENAMETOOLONG);
      out.op = UnlinkOp{.parent = {unlink.getParent()}, .name = copy(unlink.getName())};
      return keepOpen(unlink.getKeepOpen(), out);
    }
    case rpc::Operation::RMDIR: {
      auto rmdir = in.getRmdir();
      if (rmdir.getName().size() > kNameBytesMax) return Errno(ENAMETOOLONG);
      out.op = RmdirOp{.parent = {rmdir.getParent()}, .name = copy(rmdir.getName())};
      return keepOpen(rmdir.getKeepOpen(), out);
    }
    case rpc::Operation::RENAME:
      return decodeRename(in.getRename(), out);
    case rpc::Operation::SETATTR:
      out.op = decodeSetAttr(in.getSetattr());
      return Done{};
    case rpc::Operation::SETXATTR:
      return decodeSetXattr(in.getSetxattr(), out);
    case rpc::Operation::REMOVEXATTR: {
      auto remove = in.getRemovexattr();
      if (remove.getName().size() > kXattrNameBytesMax) return Errno(ERANGE);
      out.op = RemoveXattrOp{{remove.getInode()}, copy(remove.getName())};
      return Done{};
    }
    case rpc::Operation::REPORT:
      return decodeReport(in.getReport(), out);
  }
  KJ_FAIL_REQUIRE("an operation of a newer protocol", static_cast<uint16_t>(in.which()));
}

Identity decode(rpc::Identity::Reader in) {
  Identity identity{.uid = in.getUid(), .gid = in.getGid()};
  KJ_REQUIRE(in.getGroups().size() <= kGroupsMax, "too many groups");
  for (uint32_t group : in.getGroups()) identity.groups.push_back(group);
  return identity;
}

std::vector<OpenedFile> decodeOpens(capnp::List<rpc::OpenFile>::Reader in) {
  std::vector<OpenedFile> opens;
  opens.reserve(in.size());
  for (auto file : in) opens.push_back({{file.getInode()}, file.getWriting()});
  return opens;
}

Result<std::vector<FileLock>> decodeLocks(capnp::List<rpc::FileLock>::Reader in) {
  std::vector<FileLock> locks;
  locks.reserve(in.size());
  for (auto each : in) {
    auto lock = decodeLock(each);
    if (!lock) return lock.error();
    locks.push_back(*lock);
  }
  return locks;
}

void encode(const Node& in, rpc::Node::Builder out) {
  encode(in.attributes, out.initAttributes());
  if (!S_ISREG(in.attributes.mode)) return;
  out.setLayout(bytes(striping::encodeLayout(in.layout)));
}

void encode(const DirPage& in, capnp::List<rpc::Entry>::Builder out) {
  for (size_t i = 0; i < in.entries.size(); ++i) {
    auto& entry = in.entries[i];
    out[i].setName(kj::StringPtr(entry.name.c_str(), entry.name.size()));
    out[i].setCookie(entry.cookie);
    encode(entry.node, out[i].initNode());
  }
}

void encode(const NamesPage& in, rpc::Session::NamesResults::Builder out) {
  auto names = out.initNames(in.names.size());
  for (size_t i = 0; i < in.names.size(); ++i) {
    auto& name = in.names[i];
    names[i].setParent(name.parent.value);
    names[i].setName(kj::StringPtr(name.name.c_str(), name.name.size()));
    names[i].setPath(kj::StringPtr(name.path.c_str(), name.path.size()));
  }
  out.setEnd(in.end);
  out.initNext().setParent(in.next.parent);
  out.getNext().setPlace(in.next.place);
}

void encode(const ChangeRecord& in, rpc::Change::Builder out) {
  out.setIndex(in.index);
  out.setType(static_cast<uint8_t>(in.type));
  encode(in.time, out.initTime());
  out.setLastLink(in.lastLink);
  out.setHasOwner(in.hasOwner);
  out.setUid(in.uid);
  out.setGid(in.gid);
  out.setTarget(in.target.value);
  out.setParent(in.parent.value);
  out.setName(in.name.c_str());
  out.setSource(in.source.value);
  out.setSourceParent(in.sourceParent.value);
  out.setSourceName(in.sourceName.c_str());
  out.setXattr(in.xattr.c_str());
}

void encode(const ClusterMap& in, rpc::ClusterMap::Builder out) {
  out.setVersion(in.version);
  out.setFsname(in.fsname.c_str());
  auto osts = out.initOsts(in.osts.size());
  for (size_t i = 0; i < in.osts.size(); ++i) {
    auto& ost = in.osts[i];
    osts[i].setIndex(ost.index);
    osts[i].setUuid(ost.uuid.c_str());
    osts[i].setHost(ost.host.c_str());
    auto ports = osts[i].initPorts(ost.ports.size());
    for (size_t p = 0; p < ost.ports.size(); ++p) ports.set(p, ost.ports[p]);
    osts[i].setChainVersion(ost.chainVersion);
    osts[i].setActive(ost.active);
  }
}

std::string_view text(capnp::Text::Reader in) {
  return {in.begin(), in.size()};
}

kj::ArrayPtr<const kj::byte> bytes(std::string_view in) {
  return {reinterpret_cast<const kj::byte*>(in.data()), in.size()};
}

}  // namespace trainfs::mds
