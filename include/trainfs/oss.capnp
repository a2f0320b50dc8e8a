# Control between an OSS and MDT0. An OSS registers each of its OSTs with the MDS (mds.capnp:
# registerOst) and hands over an OssControl; it gets an OstLease back. Data never passes here: see bulk.h.
@0xe6f2a7f0c3d94b25;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("trainfs::rpc");

struct OstRegistration {
  fsname @0 :Text;
  index @1 :UInt32;
  uuid @2 :Text;             # of the target, made by mkfs
  host @3 :Text;             # where clients reach the data ports; empty: the address this call came from
  ports @4 :List(UInt16);
  stats @5 :OstStats;
  start @6 :UInt64;          # random, not 0: this start of the OST
  acceptedStart @7 :UInt64;  # the last one that the OST knows the MDS to have accepted; 0: none yet
  olderCopy @8 :Bool;        # the operator wants it served although there was a newer one
  # The MDS accepts a start if `acceptedStart` or `start` is the one that it accepted last: what was started from an
  # older copy of the target names another. Data is served under a start only when the OST has stored that it is accepted.
}

struct OstStats {
  totalBytes @0 :UInt64;
  freeBytes @1 :UInt64;
  availableBytes @2 :UInt64;
  files @3 :UInt64;
  freeFiles @4 :UInt64;
}

interface OstLease {
  # Implemented by the MDS, held by an OSS for one OST. Lost with the connection: register again.

  renew @0 (stats :OstStats) -> (chainVersion :UInt32);

  checkSession @1 (session :UInt64, epoch :UInt32) -> (valid :Bool);
  # Is this a live session with that epoch? Asked once per data connection and registration: what was answered
  # before the OST registered (again) counts no more.
}

interface OssControl {
  # Implemented by the OSS for one OST, called by the MDS.

  destroy @0 (objects :List(Data)) -> ();
  # 16-byte object ids. Answered when they are durably gone; missing ones are fine.

  stat @1 (objects :List(Data)) -> (results :List(ObjectStat));

  fence @2 (session :UInt64, epoch :UInt32) -> ();
  # From the answer on, no request of that session with an epoch <= `epoch` is executed, and none is still
  # being executed.

  truncate @3 (cuts :List(ObjectCut)) -> (errors :List(UInt16));
  # No object is longer than said afterwards, durably, whatever its length was; missing ones are fine. An errno each: EIO,
  # the object is damaged where it would be cut, or the disk refuses. Done only in the registration that this
  # capability came with: after that, or if the lease has run out, an exception, and what was not cut yet is not.
}

struct ObjectCut {
  object @0 :Data;           # 16-byte object id
  sizeBytes @1 :UInt64;
}

struct ObjectStat {
  # error: errno; the object is known or may be there, but cannot be looked at (its file is gone, its record is damaged).
  # The rest is not known then. What may pass (EMFILE) is an exception of the whole call.
  exists @0 :Bool;
  sizeBytes @1 :UInt64;
  usedBytes @2 :UInt64;
  mtimeSeconds @3 :Int64;
  mtimeNanoseconds @4 :UInt32;
  error @5 :UInt16;
}
