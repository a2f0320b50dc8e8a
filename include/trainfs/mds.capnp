# The wire between clients, OSSes, tools and an MDS. Prose: docs/format-mds-rpc.md.
#
# What a POSIX caller can provoke is an `error` field (errno, 0 = done); an exception means a broken peer,
# a lost connection or a server that cannot answer now (not the leader, shutting down, overloaded, an OST
# that is needed is away): look for the leader, resume the session and resend with the same slot and
# sequence. A call on a session that was evicted is an exception, too: resuming then says ESTALE.
@0xc19a5b1b0a7e4f11;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("trainfs::rpc");

using Oss = import "oss.capnp";

const protocolVersion :UInt32 = 2;

interface Mds {
  # The bootstrap interface of every MDS.

  hello @0 (protocolVersion :UInt32) -> (protocolVersion :UInt32, fsname :Text, mdtIndex :UInt16);

  openSession @1 (request :SessionRequest) -> (opened :SessionOpened) $Cxx.allowCancellation;
  # Waits while another client gives up what it caches: at most that one's term, or, as long as it goes on
  # renewing, a minute; then it is evicted. Dropping the call, or the connection, ends the waiting.

  registerOst @2 (request :Oss.OstRegistration, control :Oss.OssControl)
      -> (error :UInt16, message :Text, lease :Oss.OstLease, chainVersion :UInt32,
          termMilliseconds :UInt32);
  # error: EEXIST (that index belongs to another target), ESTALE (an older copy of the target: see OstRegistration.start),
  # EINVAL (wrong fsname or malformed), EBUSY (the target is
  # registered at another address or other ports, and may be served there until that lease is over: try again).
  # `message` says it in words. The lease lasts termMilliseconds from the sending of the last answered registration or renewal;
  # after that the OSS executes nothing for this OST until it has registered again. A registration starts with
  # no known session: every one is checked again (OstLease.checkSession), evicted ones are found out that way.

  status @3 () -> (status :ClusterStatus);
  # For tools; needs no session.

  # ---- the changelog, for tools: what has changed, for those who registered (docs/format-mds-rpc.md) ----

  changelog @4 (first :UInt64, most :UInt32) -> (changes :List(Change), last :UInt64);
  # Records from `first` on, or from the oldest that is there; at most 4096. last: the newest there is, 0: none yet.

  changelogUsers @5 () -> (users :List(ChangelogUser), last :UInt64);

  registerChangelog @6 (name :Text) -> (error :UInt16, user :UInt32);
  # EEXIST: the name (unless empty) is taken. EMFILE: 64 are registered. ENAMETOOLONG: over 255 bytes.

  deregisterChangelog @7 (user :UInt32) -> (error :UInt16);  # ENOENT

  clearChangelog @8 (user :UInt32, upTo :UInt64) -> (error :UInt16);
  # The user needs no record up to this one, 0: up to the newest. ENOENT. EINVAL: beyond the newest.
}

struct Change {
  index @0 :UInt64;          # from 1, without gaps
  type @1 :UInt8;            # Lustre's number: 1 CREAT, 2 MKDIR, 3 HLINK, 4 SLINK, 5 MKNOD, 6 UNLNK, 7 RMDIR, 8 RENME,
                             # 11 CLOSE, 12 LYOUT, 13 TRUNC, 14 SATTR, 15 XATTR, 17 MTIME
  time @2 :Time;
  lastLink @3 :Bool;         # UNLNK, RMDIR, RENME: the last link of `target` went
  hasOwner @4 :Bool;
  uid @5 :UInt32;
  gid @6 :UInt32;
  target @7 :UInt64;         # RENME: what was replaced; 0: nothing
  parent @8 :UInt64;
  name @9 :Text;             # the new one
  source @10 :UInt64;        # RENME: what moved
  sourceParent @11 :UInt64;
  sourceName @12 :Text;
  xattr @13 :Text;
}

struct ChangelogUser {
  id @0 :UInt32;
  name @1 :Text;
  cleared @2 :UInt64;        # every record up to this one
  idleSeconds @3 :UInt64;    # since it registered or cleared something
}

struct SessionRequest {
  fsname @0 :Text;
  clientName @1 :Text;         # host name and mount point, for messages
  callback @2 :ClientCallback;
  resumeId @3 :UInt64;         # 0: a new session
  resumeEpoch @4 :UInt32;
  opens @5 :List(OpenFile);
  # resume: every file that this client has open. A file counts as open for writing until the report that says
  # otherwise is answered.
  readOnly @6 :Bool;
  resumption @7 :UInt64;
  # Grows with each attempt of this client, so that one that was long on its way cannot take the session back to a
  # connection that the client has left. 0: not counted.
  locks @8 :List(FileLock);
  # resume: every lock that this client was granted. A server that has not lost them looks past the list; after a
  # restart it gives them back.
  caching @9 :Bool;
  # resume: this client was told that it may cache, or has not forgotten yet all that it had cached. Counts after a
  # restart of the server.
}

struct OpenFile {
  inode @0 :UInt64;
  writing @1 :Bool;
}

struct SessionOpened {
  error @0 :UInt16;
  # EINVAL: wrong fsname. ESTALE: the session to resume has ended; open a new one. EAGAIN: try again later
  # (too many sessions).
  message @1 :Text;
  session @2 :Session;
  id @3 :UInt64;
  epoch @4 :UInt32;
  termMilliseconds @5 :UInt32;  # renew more often than this, or be evicted
  mayCache @6 :Bool;            # see ClientCallback.recall; false in the answer to a resumption is a recall
  map @7 :ClusterMap;
  removed @8 :List(UInt64);
  # Of a new session: inodes among `opens` that have no name any more and were not kept for this client. They are not
  # open in this session, and their objects are gone or will go: nothing of them may be sent to an OST any more.
}

interface ClientCallback {
  # Implemented by the client, called by the MDS. Must never wait for this client's own requests.

  recall @0 () -> (opens :List(OpenFile));
  # Another client has come, or is at work again: stop caching names, attributes and data, report sizes of files being written,
  # then answer with all open files. From then on every open is told to the MDS.

  mayCache @1 () -> ();
  # This client is alone, or the others are at rest: it may rely on its caches.

  mapChanged @2 (map :ClusterMap) -> ();
}

interface Session {
  # Dropping the last reference does not end the session; `end` or a missed renewal does.

  execute @0 (slot :UInt16, sequence :UInt64, identity :Identity, op :Operation) -> (reply :Reply);
  # A change of the name space, durable when answered. Exactly once: (slot, sequence) names the request;
  # the same again gives the stored reply. One request in flight per slot; sequence grows by one.

  lookup @1 (parent :UInt64, name :Text) -> (error :UInt16, node :Node);
  getattr @2 (inode :UInt64) -> (error :UInt16, node :Node);
  readdir @3 (inode :UInt64, cookie :UInt64, entriesMax :UInt32)
      -> (error :UInt16, entries :List(Entry), end :Bool);
  # Entries after `cookie` (0: from the start; "." and ".." are not among them).
  readlink @4 (inode :UInt64) -> (error :UInt16, target :Data);
  getxattr @5 (inode :UInt64, name :Text) -> (error :UInt16, value :Data);
  listxattr @6 (inode :UInt64) -> (error :UInt16, names :List(Text));
  statfs @7 () -> (stats :FsStats);

  open @8 (inode :UInt64, writing :Bool) -> (error :UInt16, node :Node);
  # Tells that this client has the file open: unlinked, it stays readable until `release` or the session's end.
  # writing: durable when answered, so that the file's size can be asked of the OSTs if this client dies.
  release @9 (inode :UInt64) -> (error :UInt16);
  # This client has no handle of it any more.

  renew @10 () -> (valid :Bool);
  end @11 () -> ();

  instantiate @12 (inode :UInt64, component :UInt8) -> (error :UInt16, node :Node)
      $Cxx.allowCancellation;
  # Before the first write into a layout component: chooses its chains. Idempotent. Waits while no OST serves,
  # and after a restart for those that were there, at most for their term. Dropping the call ends the waiting.

  map @13 () -> (map :ClusterMap);
  # The present cluster map, for a client that met a stale chain before mapChanged came.

  names @14 (inode :UInt64, root :UInt64, after :NameCursor)
      -> (error :UInt16, names :List(InodeName), end :Bool, next :NameCursor);
  # The names of an inode below the directory `root`, page by page: all zero at first, then `next` of the page
  # before. A page may be empty before the end. ESTALE: no such inode, or it has no names any more.

  lock @15 (lock :FileLock, wait :UInt64, giveUp :Bool) -> (error :UInt16) $Cxx.allowCancellation;
  # Replaces what the owner had of these bytes. wait 0: now, or EAGAIN. Otherwise a number of this wait of the client's
  # choice, and the answer comes when the lock is granted; the same number again, over a new connection, is the same
  # wait, with its place in the queue. Dropping the call does not end the wait: only the same call with `giveUp`,
  # once the first is dropped, does, and says what came of it: 0, it had been granted; EINTR, it was not.
  # EDEADLK: owners of record locks would wait for each other for ever. ENOLCK: too many locks or waits.
  unlock @16 (lock :FileLock) -> (error :UInt16);
  # Whatever the owner has of these bytes, if anything.
  testLock @17 (lock :FileLock) -> (error :UInt16, found :Bool, conflict :FileLock) $Cxx.allowCancellation;
  # A lock of another owner that this one would have to wait for; `process` is 0 if it is another client's.
}

enum LockKind {
  record @0;               # fcntl(2): POSIX and open file description locks
  whole @1;                # flock(2); does not see the others
  append @2;               # to append; does not see the others
}

struct FileLock {
  inode @0 :UInt64;
  kind @1 :LockKind;
  owner @2 :UInt64;        # of one client, and one kind
  exclusive @3 :Bool;
  first @4 :UInt64;        # byte
  last @5 :UInt64;         # byte, belongs to it; at most 2^63 - 1, which is "to the end"
  process @6 :UInt32;
}

struct NameCursor {
  parent @0 :UInt64;
  place @1 :UInt64;
}

struct InodeName {
  parent @0 :UInt64;       # 0: this is `root` itself
  name @1 :Text;
  path @2 :Text;           # from `root`, beginning with "/"; empty: longer than 16 KiB
}

struct Identity {
  uid @0 :UInt32;
  gid @1 :UInt32;
  groups @2 :List(UInt32);
}

struct Time {
  seconds @0 :Int64;
  nanoseconds @1 :UInt32;
}

struct Attributes {
  inode @0 :UInt64;
  mode @1 :UInt32;
  uid @2 :UInt32;
  gid @3 :UInt32;
  links @4 :UInt32;
  sizeBytes @5 :UInt64;
  usedBytes @6 :UInt64;
  device @7 :UInt64;
  flags @8 :UInt32;
  atime @9 :Time;
  mtime @10 :Time;
  ctime @11 :Time;
  btime @12 :Time;
  settings @13 :UInt64;    # how often size or mtime were set, by truncate or utimes; reports do not count
  acls @14 :UInt8;         # 1: has an access ACL that says more than `mode`; 2: a directory with a default ACL
}

struct Node {
  attributes @0 :Attributes;
  layout @1 :Data;         # layout record (docs/format-layout.md); empty unless a regular file
}

struct Entry {
  name @0 :Text;
  cookie @1 :UInt64;       # 63 bits, > 2; stays valid while entries come and go
  node @2 :Node;
}

struct Reply {
  error @0 :UInt16;
  node @1 :Node;           # the inode concerned, where there still is one
  existed @2 :Bool;        # create without `exclusive`: the file was there already
}

struct FsStats {
  totalBytes @0 :UInt64;
  freeBytes @1 :UInt64;
  availableBytes @2 :UInt64;
  files @3 :UInt64;        # inodes that could exist
  freeFiles @4 :UInt64;
}

struct Operation {
  union {
    create @0 :Create;             # regular file, directory, symlink, FIFO, socket or device, by mode
    link @1 :Link;
    unlink @2 :Unlink;
    rmdir @3 :Unlink;
    rename @4 :Rename;
    setattr @5 :SetAttr;
    setxattr @6 :SetXattr;
    removexattr @7 :RemoveXattr;
    report @8 :Report;
  }
}

struct Create {
  parent @0 :UInt64;
  name @1 :Text;
  mode @2 :UInt32;           # with the type; as the caller asked for it, umask not applied
  device @3 :UInt64;
  target @4 :Data;           # symlink
  exclusive @5 :Bool;        # EEXIST if there; otherwise an existing regular file is opened
  writing @6 :Bool;          # regular file: opens it as Session.open with writing, in the same command
  layout @7 :Text;           # a layout in text form that replaces the inherited one; empty: inherit
  opening @8 :Bool;          # regular file: opens it as Session.open without writing, in the same command
  umask @9 :UInt32;          # of the caller; counts unless the parent has a default ACL, which takes its place
  unnamed @10 :Bool;         # regular file, with writing: makes no name; goes when it is released, unless `link` comes first
  linkable @11 :Bool;        # unnamed: `link` is allowed, to this session
}

struct Link {
  inode @0 :UInt64;
  parent @1 :UInt64;
  name @2 :Text;
}

struct Unlink {
  parent @0 :UInt64;
  name @1 :Text;
  keepOpen @2 :List(UInt64); # inodes that this client has open: if this removes the last link of one, keep it
}

struct Rename {
  parent @0 :UInt64;
  name @1 :Text;
  newParent @2 :UInt64;
  newName @3 :Text;
  noReplace @4 :Bool;
  exchange @5 :Bool;
  keepOpen @6 :List(UInt64);
}

struct SetAttr {
  inode @0 :UInt64;
  mask @1 :UInt32;           # SetAttrMask: bits of which fields are set
  mode @2 :UInt32;
  uid @3 :UInt32;
  gid @4 :UInt32;
  sizeBytes @5 :UInt64;
  atime @6 :Time;
  mtime @7 :Time;
  flags @8 :UInt32;
  keepBytes @9 :UInt64;
  # With kCutObjects, beside a size: first the OSTs cut what the objects have beyond this many bytes of the file, durably.
  # Meanwhile whoever asks about the file waits. EIO: part of the file cannot be cut; its size is then what the OSTs say.
}

struct SetXattr {
  inode @0 :UInt64;
  name @1 :Text;
  value @2 :Data;
  create @3 :Bool;           # XATTR_CREATE
  replace @4 :Bool;          # XATTR_REPLACE
}

struct RemoveXattr {
  inode @0 :UInt64;
  name @1 :Text;
}

struct Report {
  # What a writer knows: size (never shrinks the file), times, which objects exist now.
  inode @0 :UInt64;
  sizeBytes @1 :UInt64;
  usedBytes @2 :UInt64;      # allocated bytes as the OSTs said last; 0: unknown
  mtime @3 :Time;
  exists @4 :List(StripeExists);
  stillWriting @5 :Bool;     # false: this client has no writing handle any more
  killPrivileges @6 :Bool;   # data was written by somebody without CAP_FSETID: clear set-user-ID, set-group-ID
  settings @7 :UInt64;       # Attributes.settings as this client knew it when it sent the writes
  overtaken @8 :Bool;        # some were sent under an older count
  # The size counts only under the present count. Else the file is cut or grown since, and what was written after that, by
  # a client that had not heard of it, only the objects know: the OSTs are asked. An older mtime must be later than ctime.
}

struct StripeExists {
  component @0 :UInt8;
  stripe @1 :UInt32;
}

struct ClusterMap {
  version @0 :UInt64;
  fsname @1 :Text;
  osts @2 :List(Ost);
}

struct Ost {
  index @0 :UInt32;
  uuid @1 :Text;
  host @2 :Text;             # address of the data ports
  ports @3 :List(UInt16);    # one per data worker: object -> port by workerOf() in trainfs/bulk.h
  chainVersion @4 :UInt32;   # of chain `index`
  active @5 :Bool;           # its lease with the MDS is current
}

struct ClusterStatus {
  fsname @0 :Text;
  mdts @1 :List(TargetStatus);
  osts @2 :List(TargetStatus);
  map @3 :ClusterMap;
  sessions @4 :List(SessionStatus);
}

struct SessionStatus {
  id @0 :UInt64;
  epoch @1 :UInt32;
  clientName @2 :Text;
  connected @3 :Bool;
  mayCache @4 :Bool;
}

struct TargetStatus {
  index @0 :UInt32;
  uuid @1 :Text;
  address @2 :Text;
  active @3 :Bool;
  totalBytes @4 :UInt64;
  freeBytes @5 :UInt64;
  availableBytes @6 :UInt64;
  files @7 :UInt64;
  freeFiles @8 :UInt64;
}
