// Between the generated Cap'n Proto types of the MDS wire and the client's plain values.
// Pure. A record that cannot be what it claims, or a list longer than it can be, is a broken peer:
// kj::Exception.
#pragma once

#include <vector>

#include "fuse_client/mds_client.h"
#include "lock_wire.h"
#include "mds.capnp.h"
#include "trainfs/cluster_map.h"

namespace trainfs::client {

Node decodeNode(rpc::Node::Reader reader);
NamesPage decodeNames(rpc::Session::NamesResults::Reader reader);
// `entriesMax`: how many were asked for.
DirPage decodePage(capnp::List<rpc::Entry>::Reader entries, bool end, uint32_t entriesMax);
std::vector<std::string> decodeXattrNames(capnp::List<capnp::Text>::Reader names);
ClusterMap decodeMap(rpc::ClusterMap::Reader reader);
std::vector<InodeId> decodeInodes(capnp::List<uint64_t>::Reader inodes);
FsStats decodeStats(rpc::FsStats::Reader reader);
Outcome decodeOutcome(rpc::Reply::Reader reader);

void encodeIdentity(const Identity& identity, rpc::Identity::Builder builder);
void encodeOperation(const Operation& op, rpc::Operation::Builder builder);
void encodeLocks(const std::vector<FileLock>& locks, capnp::List<rpc::FileLock>::Builder builder);
FileLock requireLock(rpc::FileLock::Reader reader);
void encodeOpens(const std::vector<OpenFile>& opens, capnp::List<rpc::OpenFile>::Builder builder);

}  // namespace trainfs::client
