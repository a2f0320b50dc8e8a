// Between Cap'n Proto messages and the plain structs inside: generated types stop here and in the
// *_rpc files. No I/O, no state.
#pragma once

#include <string>
#include <vector>

#include "lock_wire.h"
#include "mds.capnp.h"
#include "mds/changelog.h"
#include "mds/cluster_map.h"
#include "mds/command.h"
#include "mds/names.h"
#include "mds/namespace.h"
#include "mds/session_table.h"
#include "trainfs/result.h"

namespace trainfs::mds {

// Limits of a request beyond those of the name space (types.h): more is refused before it is
// copied.
inline constexpr size_t kGroupsMax = 65536;  // NGROUPS_MAX, <linux/limits.h>
inline constexpr size_t kKeepOpenMax = 65536;
inline constexpr size_t kLayoutTextBytesMax = 256 * kKiB;
inline constexpr size_t kExistsMax = kComponentsMax * kStripesMax;

// A request of a client to change something, as it came: what the leader has to choose is not in it
// yet.
struct ChangeRequest {
  uint16_t slot = 0;
  uint64_t sequence = 0;
  Identity identity;
  Operation op;
  std::vector<InodeId> keepOpen;  // unlink, rmdir, rename
  std::string layoutText;         // create
  bool opening = false;           // create: the session has the file open afterwards
};

// Errors: what is too long for its purpose. Throws for a union member of a newer protocol.
Status decode(rpc::Operation::Reader in, ChangeRequest& out);
Identity decode(rpc::Identity::Reader in);
std::vector<OpenedFile> decodeOpens(capnp::List<rpc::OpenFile>::Reader in);
Result<std::vector<FileLock>> decodeLocks(capnp::List<rpc::FileLock>::Reader in);

void encode(const Node& in, rpc::Node::Builder out);
void encode(const DirPage& in, capnp::List<rpc::Entry>::Builder out);
void encode(const NamesPage& in, rpc::Session::NamesResults::Builder out);
void encode(const ChangeRecord& in, rpc::Change::Builder out);
void encode(const ClusterMap& in, rpc::ClusterMap::Builder out);

// Views into a message; what they point into lives as long as the request.
std::string_view text(capnp::Text::Reader in);
kj::ArrayPtr<const kj::byte> bytes(std::string_view in);

}  // namespace trainfs::mds
