// Reading and writing files: plans by striping, run by the DataClient, recorded in the inode,
// reported to the MDS. Any thread; nothing here blocks. Answers run on the thread that got the last
// word: data worker or MDS thread, or the caller's if nothing had to be asked.
//
// Writes go through to the OSTs before they are answered. Size, mtime and which objects exist are
// kept here while the file is being written, and reported in fsync, at the last close, when the MDS
// recalls, and every few seconds.
#pragma once

#include <span>

#include "fuse_client/append_turns.h"
#include "fuse_client/coherence.h"
#include "fuse_client/data_client.h"
#include "fuse_client/inodes.h"
#include "fuse_client/mds_client.h"
#include "fuse_client/transfer.h"

namespace trainfs::client {

class FileIo {
 public:
  // Makes the kernel forget an inode's attributes, then runs the function.
  using ForgetMode = std::function<void(InodeId, std::function<void()>)>;

  FileIo(MdsClient& mds, DataClient& data, Inodes& inodes, Coherence& coherence,
         AppendTurns& appendTurns, ForgetMode forgetMode)
      : mds_(mds),
        data_(data),
        inodes_(inodes),
        coherence_(coherence),
        appendTurns_(appendTurns),
        forgetMode_(std::move(forgetMode)) {}

  // Present attributes; the answer comes at once if this client may rely on what it knows.
  void attributes(InodePtr inode, Answer<Inodes::Taken> answer);

  // `into` and `data` must stay valid until the answer; or they are of `transfer`. Fewer bytes than
  // asked for: the end of the file.
  void read(InodePtr inode, uint64_t offset, std::span<std::byte> into, Answer<size_t> answer,
            TransferPtr transfer = {});
  // killPrivileges: the writer lacks CAP_FSETID, so set-user-ID and set-group-ID bits go before it
  // is answered.
  void write(InodePtr inode, uint64_t offset, std::span<const std::byte> data, bool killPrivileges,
             Answer<size_t> answer, TransferPtr transfer = {});
  // At the end of the file, wherever that is when no other client can append to it.
  struct Appended {
    uint64_t offsetBytes;
    size_t bytes;
  };
  void append(InodePtr inode, std::span<const std::byte> data, bool killPrivileges,
              Answer<Appended> answer, TransferPtr transfer = {});
  // Nobody waits for the transfer any more, and it ends as soon as no server may have it: if none
  // was asked yet it is over, with or without an answer. What is done to the file later waits for a
  // write that may still happen.
  enum class Direction { kRead, kWrite };
  void withdraw(const InodePtr& inode, Transfer& transfer, Direction direction);

  // Any change of attributes; with kSetSize the MDS has the objects cut first.
  void setAttributes(InodePtr inode, Identity identity, SetAttrOp op, Answer<Inodes::Taken> answer);
  // The range reads as zeros afterwards. Beyond the size nothing happens, unless `extend`, which
  // comes first: EFBIG changes nothing.
  void punch(InodePtr inode, FileRange range, bool extend, Answer<Done> answer);
  // The file is at least this long afterwards, for everybody.
  void extend(InodePtr inode, uint64_t sizeBytes, Answer<Done> answer);

  // Data, size and name are on stable storage when it is answered. EIO, once per mark: something
  // that was written before is lost.
  void sync(InodePtr inode, Losses::Mark mark, Answer<Done> answer);
  // Tells the MDS what was written. One after another per inode, unless urgent.
  void report(InodePtr inode, Answer<Done> answer);
  // Now and then, for what nobody waits for: unless the last one of these is still to be answered,
  // so that they do not add up while there is no MDS.
  void reportInPassing(const InodePtr& inode);
  void reportUrgently(InodePtr inode, Answer<Done> answer);
  // Runs `next` with nothing else of this client under way on the inode, until it drops its pass,
  // and with all that was written known to the MDS; or with the error of the report.
  using Pass = OrderedAccess::Pass;
  void exclusivelyReported(InodePtr inode, std::function<void(Status, Pass)> next);

  // Handles. The inode counts as open from the answer (or the call, for readers that need none) on.
  void open(InodePtr inode, bool writing, Answer<Done> answer);
  void close(InodePtr inode, bool writing);
  // A name of it was removed, or something open here, maybe this, was replaced by a rename: when
  // the last handle goes, the MDS is told, which keeps an unlinked file until then.
  void noteUnlinked(const InodePtr& inode);
  void noteReplaced(InodeId inode);
  // The session was evicted, and a new one was told Inodes::openFiles: what was written and not
  // reported may not be what others see.
  void loseUnreported();

 private:
  void askAttributes(const InodePtr& inode, uint32_t reportsLeft, Answer<Inodes::Taken> answer);
  void readNow(const InodePtr& inode, uint64_t offset, std::span<std::byte> into, Pass pass,
               Answer<size_t> answer, const TransferPtr& transfer);
  // What keeps others away from a write, until it goes.
  struct Hold {
    Pass pass;
    AppendTurns::TurnPtr turn;  // null: of no append
  };
  void writeNow(const InodePtr& inode, uint64_t offset, std::span<const std::byte> data,
                bool killPrivileges, Hold hold, Answer<size_t> answer, const TransferPtr& transfer);
  struct SentWrite {
    std::vector<WritePiece> pieces;
    uint64_t offset, end;
    uint64_t settings;  // Attributes::settings as it was known then
    bool killPrivileges;
  };
  // True: set-user-ID bits have to go first.
  bool wrote(const InodePtr& inode, const SentWrite& sent, const Verifiers& verifiers);
  static void noteUnsynced(Inode& inode, const ObjectRef& object, uint64_t verifier);
  static UnsyncedObjects takeUnsynced(Inode& inode);
  void noteSynced(Inode& inode, const UnsyncedObjects& objects, const Result<Verifiers>& verifiers);
  void reportSynced(const InodePtr& inode, Losses::Mark mark, Status synced, Answer<Done> answer);
  void setAttributesNow(const InodePtr& inode, const Identity& identity, SetAttrOp op,
                        Answer<Inodes::Taken> answer);
  void cutIfNeeded(Inode& inode, SetAttrOp& op);
  void whenCutIsKnown(const InodePtr& inode, Answer<Done> next);
  void punchNow(const InodePtr& inode, FileRange range, Answer<Done> answer);
  void extendNow(const InodePtr& inode, uint64_t sizeBytes, Answer<Done> answer);
  void sendReport(const InodePtr& inode, bool stillWriting, uint64_t usedBytes,
                  MdsClient::Urgency urgency, Answer<Done> answer);
  void reportLast(const InodePtr& inode, Pass pass);
  void measureUsed(const InodePtr& inode, std::function<void(uint64_t)> next);
  void releaseInTurn(const InodePtr& inode);
  void releaseIfClosed(const InodePtr& inode, Pass pass);
  void tellAgain(const InodePtr& inode, Pass pass);

  MdsClient& mds_;
  DataClient& data_;
  Inodes& inodes_;
  Coherence& coherence_;
  AppendTurns& appendTurns_;
  ForgetMode forgetMode_;
};

}  // namespace trainfs::client
