// Messages of the MDS protocol, as a server decodes requests and a client decodes answers: a kj
// exception, an errno, or values within their limits.
#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <cstring>

#include "fuse_client/mds_wire.h"
#include "mds/lock_table.h"
#include "mds/namespace.h"
#include "mds/wire.h"
#include "refusal.h"
#include "striping/layout_record.h"
#include "trainfs/space.h"
#include "trainfs/target.h"

using namespace trainfs;
using fuzz::require;

namespace {

template <typename Type, typename Fill>
std::string message(char kind, Fill fill) {
  capnp::MallocMessageBuilder builder;
  fill(builder.initRoot<Type>());
  auto words = capnp::messageToFlatArray(builder);
  auto bytes = words.asBytes();
  return kind + std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

std::string operation(const client::Operation& op) {
  return message<rpc::Operation>(0, [&](auto root) { client::encodeOperation(op, root); });
}

mds::Node someNode() {
  mds::Node node;
  node.attributes.inode = {5};
  node.attributes.mode = 0100644;
  node.layout = {.generation = 1, .components = {{.stripeCount = 2, .chains = {{0}, {1}}}}};
  return node;
}

FileLock someLock() {
  return {.inode = {5}, .owner = 77, .range = {10, 19}, .mode = LockMode::kExclusive};
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  ClusterMap map{.version = 7, .fsname = "trainfs"};
  map.osts = {{.index = 1, .uuid = "u", .host = "oss1", .ports = {7180, 7181}, .chainVersion = 1}};
  mds::DirPage page;
  page.entries.push_back({.name = "name", .cookie = 1 << 20, .inode = {5}, .node = someNode()});
  NamesPage names{.names = {{{1}, "name", "/name"}}, .end = false, .next = {1, 7}};
  return {
      operation(client::CreateOp{
          .parent = {1}, .name = "file", .mode = 0100666, .umask = 022, .target = "t"}),
      operation(LinkOp{{5}, {1}, "link"}),
      operation(client::UnlinkOp{{1}, "file", {{5}, {6}}}),
      operation(client::RmdirOp{{1}, "directory", {}}),
      operation(client::RenameOp{.parent = {1}, .name = "a", .newParent = {2}, .newName = "b"}),
      operation(SetAttrOp{.inode = {5}, .mask = 9, .mode = 0600}),
      operation(SetXattrOp{.inode = {5}, .name = "user.x", .value = "value"}),
      operation(RemoveXattrOp{{5}, "user.x"}),
      operation(ReportOp{.inode = {5}, .sizeBytes = 9, .exists = {{0, 1}, {1, 3}}}),
      message<rpc::Identity>(1, [](auto root) { client::encodeIdentity({7, 8, {9, 10}}, root); }),
      message<rpc::SessionRequest>(2,
                                   [](auto root) {
                                     root.setFsname("trainfs");
                                     root.setClientName("host:/mnt");
                                     client::encodeOpens({{{5}, true}, {{6}, false}},
                                                         root.initOpens(2));
                                     client::encodeLocks({someLock()}, root.initLocks(1));
                                   }),
      message<rpc::Node>(3, [](auto root) { mds::encode(someNode(), root); }),
      message<rpc::Session::ReaddirResults>(
          4, [&](auto root) { mds::encode(page, root.initEntries(page.entries.size())); }),
      message<rpc::ClusterMap>(5, [&](auto root) { mds::encode(map, root); }),
      message<rpc::Reply>(6, [](auto root) { mds::encode(someNode(), root.initNode()); }),
      message<rpc::FsStats>(7, [](auto root) { root.setTotalBytes(1 << 30); }),
      message<rpc::Session::NamesResults>(8, [&](auto root) { mds::encode(names, root); }),
      message<rpc::FileLock>(9, [](auto root) { encodeLock(someLock(), root); }),
      message<rpc::OstStats>(10, [](auto root) { root.setFreeFiles(7); }),
  };
}

namespace {

void requireWithinLimits(const mds::ChangeRequest& request) {
  require(request.keepOpen.size() <= mds::kKeepOpenMax);
  require(request.layoutText.size() <= mds::kLayoutTextBytesMax);
  if (auto* create = std::get_if<mds::CreateOp>(&request.op))
    require(create->name.size() <= kNameBytesMax && create->target.size() <= kSymlinkBytesMax);
  if (auto* rename = std::get_if<mds::RenameOp>(&request.op))
    require(rename->name.size() <= kNameBytesMax && rename->newName.size() <= kNameBytesMax);
  if (auto* set = std::get_if<SetXattrOp>(&request.op))
    require(set->name.size() <= kXattrNameBytesMax &&
            set->value.size() <= mds::kLayoutTextBytesMax);
  if (auto* report = std::get_if<ReportOp>(&request.op))
    require(report->exists.size() <= mds::kExistsMax);
}

void requireSound(const client::Node& node) {
  require(node.attributes.inode != kNoInode);
  if (node.layout == nullptr) return;
  auto again = striping::decodeLayout(striping::encodeLayout(*node.layout));
  require(again.ok() && *again == *node.layout);
}

void requireSound(const Result<std::vector<FileLock>>& locks, size_t count) {
  if (!locks) return;
  require(locks->size() == count);
  for (auto& lock : *locks)
    require(lock.range.valid() && lock.kind <= LockKind::kAppend &&
            (lock.kind == LockKind::kRecord || lock.range == LockRange{}));
}

void decodeAs(uint8_t kind, capnp::MessageReader& message) {
  switch (kind) {
    case 0: {
      mds::ChangeRequest request;
      if (mds::decode(message.getRoot<rpc::Operation>(), request).ok())
        requireWithinLimits(request);
      break;
    }
    case 1:
      require(mds::decode(message.getRoot<rpc::Identity>()).groups.size() <= mds::kGroupsMax);
      break;
    case 2: {
      auto request = message.getRoot<rpc::SessionRequest>();
      mds::text(request.getFsname());
      mds::text(request.getClientName());
      auto opens = request.getOpens();
      if (opens.size() <= mds::kOpensPerSessionMax)
        require(mds::decodeOpens(opens).size() == opens.size());
      if (auto locks = request.getLocks(); locks.size() <= mds::kLocksClaimedMax)
        requireSound(mds::decodeLocks(locks), locks.size());
      break;
    }
    case 3:
      requireSound(client::decodeNode(message.getRoot<rpc::Node>()));
      break;
    case 4:
      for (auto& entry :
           client::decodePage(message.getRoot<rpc::Session::ReaddirResults>().getEntries(), true,
                              mds::kReaddirEntriesMax)
               .entries)
        requireSound(entry.node);
      break;
    case 5:
      require(client::decodeMap(message.getRoot<rpc::ClusterMap>()).osts.size() <=
              kOstIndexMax + 1);
      break;
    case 6:
      client::decodeOutcome(message.getRoot<rpc::Reply>());
      break;
    case 7:
      client::decodeStats(message.getRoot<rpc::FsStats>());
      break;
    case 8: {
      auto results = message.getRoot<rpc::Session::NamesResults>();
      require(client::decodeNames(results).names.size() == results.getNames().size());
      break;
    }
    case 9:
      if (auto lock = decodeLock(message.getRoot<rpc::FileLock>())) require(lock->range.valid());
      require(client::requireLock(message.getRoot<rpc::FileLock>()).range.valid());
      break;
    default:
      decodeSpace(message.getRoot<rpc::OstStats>());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::vector<capnp::word> words((size - 1) / sizeof(capnp::word));
  if (!words.empty()) std::memcpy(words.data(), data + 1, words.size() * sizeof(capnp::word));
  fuzz::mayRefuse([&] {
    capnp::FlatArrayMessageReader message(kj::arrayPtr(words.data(), words.size()));
    decodeAs(data[0], message);
  });
  return 0;
}
