// FileIo's dealings with the MDS about files being written: reports, fsync, open and close.
#include <sys/stat.h>

#include <utility>

#include "fuse_client/file_io.h"
#include "striping/layout.h"
#include "trainfs/logging.h"
#include "trainfs/object_id.h"

namespace trainfs::client {

namespace {

uint64_t roundUp(uint64_t bytes) {
  return (bytes + kAllocationBytes - 1) / kAllocationBytes * kAllocationBytes;
}

}  // namespace

void FileIo::sendReport(const InodePtr& inode, bool stillWriting, uint64_t usedBytes,
                        MdsClient::Urgency urgency, Answer<Done> answer) {
  ReportOp op{.inode = inode->id, .usedBytes = usedBytes, .stillWriting = stillWriting};
  uint64_t upTo;
  {
    std::lock_guard lock(inode->mutex);
    auto& unreported = inode->unreported;
    op.sizeBytes = unreported.endBytes;
    op.mtime = unreported.mtime;
    op.exists = unreported.exists;
    op.killPrivileges = unreported.killPrivileges;
    bool written = unreported.endBytes != 0 || unreported.mtime != Time{};
    op.settings = written ? unreported.settings : inode->attributes.settings;
    op.overtaken = unreported.overtaken();
    upTo = unreported.changes;
  }
  mds_.execute(
      {}, std::move(op),
      [=, this, answer = std::move(answer)](Result<Outcome> outcome) {
        // A file that is gone has nothing to be reported any more.
        bool gone =
            !outcome && (outcome.error() == Errno(ENOENT) || outcome.error() == Errno(ESTALE));
        if (!outcome && !gone) return answer(outcome.error());
        // First: between the two the file must not be as if nothing had been written.
        if (!gone && outcome->node) inodes_.takeChange(*inode, *outcome->node);
        bool unknown;
        {
          std::lock_guard lock(inode->mutex);
          // With a writer it cannot be gone: the MDS does not know of this writer, and will not be
          // told the size.
          unknown = gone && inode->writers != 0;
          if (unknown) inode->losses.add();
          inode->unreported.noteReported(upTo);
          // Not before: a server that starts anew is told of every writer whose last word it may
          // not have.
          if (!stillWriting) inode->toldWriting = false;
          if (gone) {
            inode->known = false;
            inode->changedAt = inodes_.tick();
          }
        }
        if (unknown) return answer(Errno(EIO));
        answer(Done{});
      },
      urgency);
}

void FileIo::report(InodePtr inode, Answer<Done> answer) {
  inode->syncs->exclusive([=, this, answer = std::move(answer)](Pass pass) {
    bool any;
    {
      std::lock_guard lock(inode->mutex);
      any = inode->unreported.any();
    }
    if (!any) return answer(Done{});
    sendReport(inode, true, 0, MdsClient::Urgency::kOrdinary,
               [answer, pass](Status status) { answer(status); });
  });
}

void FileIo::reportInPassing(const InodePtr& inode) {
  {
    std::lock_guard lock(inode->mutex);
    if (std::exchange(inode->reporting, true)) return;
  }
  report(inode, [inode](Status) {
    std::lock_guard lock(inode->mutex);
    inode->reporting = false;
  });
}

void FileIo::reportUrgently(InodePtr inode, Answer<Done> answer) {
  sendReport(inode, true, 0, MdsClient::Urgency::kUrgent, std::move(answer));
}

void FileIo::exclusivelyReported(InodePtr inode, std::function<void(Status, Pass)> next) {
  inode->access->exclusive(
      [=, this](Pass pass) { report(inode, [next, pass](Status status) { next(status, pass); }); });
}

// What a sync has to cover. mutex held.
UnsyncedObjects FileIo::takeUnsynced(Inode& inode) {
  UnsyncedObjects objects;
  objects.swap(inode.unsynced);
  if (inode.pastUnknown && inode.layout)
    for (auto& placed : striping::objectsOf(inode.id, *inode.layout, true))
      objects.emplace(placed.object, Unsynced{placed.chain});
  return objects;
}

// `verifiers`: those of the sync of `objects`. mutex held.
void FileIo::noteSynced(Inode& inode, const UnsyncedObjects& objects,
                        const Result<Verifiers>& verifiers) {
  if (verifiers) inode.pastUnknown = false;
  size_t i = 0;
  for (auto& [object, change] : objects) {
    bool known = change.verifier != 0;  // else it is one of the past
    // Of whose past nothing is known may be one of those that could not be remembered.
    uint64_t expected = known ? change.verifier : inodes_.forgotten().dropped(change.chain);
    if (!verifiers && known) {
      auto [at, added] = inode.unsynced.try_emplace(object, change);
      if (!added && at->second.verifier != change.verifier) inode.losses.add();
    } else if (verifiers && expected != 0 && expected != (*verifiers)[i]) {
      spdlog::error("file {:x}: object {}: its server lost what was written and not synced",
                    inode.id.value, objectIdHex(object));
      inode.losses.add();
    }
    ++i;
  }
}

void FileIo::sync(InodePtr inode, Losses::Mark mark, Answer<Done> answer) {
  inode->syncs->exclusive([=, this, answer = std::move(answer)](Pass pass) {
    UnsyncedObjects objects;
    {
      std::lock_guard lock(inode->mutex);
      objects = takeUnsynced(*inode);
    }
    std::vector<ObjectRef> refs;
    refs.reserve(objects.size());
    for (auto& [object, change] : objects) refs.push_back({object, change.chain});
    auto synced = [=, this](Result<Verifiers> verifiers) {
      {
        std::lock_guard lock(inode->mutex);
        noteSynced(*inode, objects, verifiers);
      }
      auto status = verifiers ? Status(Done{}) : Status(verifiers.error());
      reportSynced(inode, mark, status, [answer, pass](Status done) { answer(done); });
    };
    if (refs.empty()) return synced(Verifiers{});
    data_.sync(std::move(refs), synced);
  });
}

// The end of a sync: the MDS learns the size, and the handle what is lost.
void FileIo::reportSynced(const InodePtr& inode, Losses::Mark mark, Status synced,
                          Answer<Done> answer) {
  auto tell = [inode, mark = std::move(mark), answer = std::move(answer)](Status status) {
    bool lost;
    {
      std::lock_guard lock(inode->mutex);
      lost = inode->losses.take(mark);
    }
    answer(status && lost ? Status(Errno(EIO)) : status);
  };
  bool any;
  {
    std::lock_guard lock(inode->mutex);
    any = inode->unreported.any();
  }
  if (!synced || !any) return tell(synced);
  sendReport(inode, true, 0, MdsClient::Urgency::kOrdinary, tell);
}

// ---- handles ----

void FileIo::open(InodePtr inode, bool writing, Answer<Done> answer) {
  inodes_.addHandle(inode, writing);
  auto fail = [=, this](Errno error) {
    close(inode, writing);
    answer(error);
  };
  if (!writing && coherence_.mayCache()) {
    // Reading needs no word of the MDS's, once attributes and layout are here.
    return attributes(inode, [=](Result<Inodes::Taken> taken) {
      if (!taken) return fail(taken.error());
      answer(Done{});
    });
  }
  // Writers: after the last report of an earlier one, which says that nobody writes any more. That
  // is the only report that says so, and the only one that is sent under exclusive access.
  auto told = [=, this](Pass pass) {
    {
      std::unique_lock lock(inode->mutex);
      if (writing && inode->toldWriting && inode->known && coherence_.mayCache()) {
        lock.unlock();
        return answer(Done{});
      }
      inode->toldOpen = true;
      inode->toldWriting |= writing;
    }
    auto askedAt = inodes_.now();
    mds_.open(inode->id, writing, [=, this, pass = pass](Result<Node> node) {
      if (!node) return fail(node.error());
      inodes_.take(*inode, *node, askedAt);
      std::unique_lock lock(inode->mutex);
      if (!inode->unreported.any())
        inode->grownInOrder = inode->attributes.usedBytes >= inode->attributes.sizeBytes;
      lock.unlock();
      answer(Done{});
    });
  };
  if (writing)
    inode->access->exclusive(told);
  else
    inode->access->shared(told);
}

void FileIo::close(InodePtr inode, bool writing) {
  auto left = inodes_.dropHandle(inode, writing);
  if (left.lastWriter)
    inode->access->exclusive([=, this](Pass pass) { reportLast(inode, std::move(pass)); });
  else if (left.last)
    releaseInTurn(inode);
}

// After the last report, which may not have got in line yet: the release takes away what that one
// needs.
void FileIo::releaseInTurn(const InodePtr& inode) {
  {
    std::lock_guard lock(inode->mutex);
    if (inode->handles != 0 || !(inode->toldOpen || inode->orphan)) return;
  }
  inode->access->exclusive([=, this](Pass pass) { reportLast(inode, std::move(pass)); });
}

void FileIo::reportLast(const InodePtr& inode, Pass pass) {
  bool report;
  {
    std::lock_guard lock(inode->mutex);
    if (inode->writers != 0) return;  // opened again meanwhile
    // With nothing to say, the release says that nobody writes any more; but that waits for the
    // readers.
    report = inode->unreported.any() || (inode->toldWriting && inode->handles != 0);
  }
  if (!report) return releaseIfClosed(inode, std::move(pass));
  measureUsed(inode, [=, this](uint64_t usedBytes) {
    // One report after another: with the last one the right to send any is gone.
    inode->syncs->exclusive([=, this](Pass syncPass) {
      sendReport(inode, false, usedBytes, MdsClient::Urgency::kOrdinary, [=, this](Status status) {
        (void)syncPass;
        if (!status) {
          std::lock_guard lock(inode->mutex);
          inode->losses.add();
        }
        releaseIfClosed(inode, pass);
      });
    });
  });
}

// Allocated bytes: from the size where no hole can be, else from the OSTs. 0: they could not be
// asked.
void FileIo::measureUsed(const InodePtr& inode, std::function<void(uint64_t)> next) {
  std::vector<ObjectRef> refs;
  uint64_t used = 0;
  {
    std::lock_guard lock(inode->mutex);
    if (inode->grownInOrder || !inode->layout) {
      used = roundUp(inode->present().sizeBytes);
    } else {
      for (auto& placed : striping::objectsOf(inode->id, *inode->layout, true))
        refs.push_back({placed.object, placed.chain});
    }
  }
  if (refs.empty()) return next(used);
  data_.stat(std::move(refs), [next = std::move(next)](Result<std::vector<ObjectFigures>> figures) {
    uint64_t sum = 0;
    if (figures)
      for (auto& figure : *figures) sum += figure.usedBytes;
    next(sum);
  });
}

void FileIo::noteUnlinked(const InodePtr& inode) {
  {
    std::lock_guard lock(inode->mutex);
    if (inode->attributes.links != 0) return;
    inode->orphan = true;
  }
  releaseInTurn(inode);  // it may have been closed while the unlink was under way
}

void FileIo::noteReplaced(InodeId id) {
  auto inode = inodes_.find(id);
  if (!inode) return;
  {
    std::lock_guard lock(inode->mutex);
    inode->orphan = true;
    inode->known = false;
    inode->changedAt = inodes_.tick();
  }
  releaseInTurn(inode);
}

void FileIo::loseUnreported() {
  size_t lost = 0;
  for (auto& inode : inodes_.all()) {
    std::lock_guard lock(inode->mutex);
    inode->orphan = false;
    auto& unreported = inode->unreported;
    if (!unreported.any()) continue;
    inode->losses.add();
    unreported = {.changes = unreported.changes, .reported = unreported.changes};
    ++lost;
  }
  if (lost != 0)
    spdlog::error(
        "{} files had unreported changes when the session ended: EIO at their next fsync or close",
        lost);
}

// Tells the MDS that no handle is left, if it was told of one or keeps the unlinked file for this
// client. Under exclusive access until it is answered, so that it cannot undo the next open.
void FileIo::releaseIfClosed(const InodePtr& inode, Pass pass) {
  {
    std::lock_guard lock(inode->mutex);
    if (inode->handles != 0 || !(inode->toldOpen || inode->orphan)) return;
    inode->toldOpen = inode->toldWriting = inode->orphan = false;
  }
  mds_.release(inode->id, [=, this](Status) { tellAgain(inode, pass); });
}

// Of handles that are in line behind a release the MDS may have been told meanwhile, by a
// resumption: the release, sent again after it, took that away. Writers tell when it is their turn.
void FileIo::tellAgain(const InodePtr& inode, Pass pass) {
  {
    std::lock_guard lock(inode->mutex);
    inode->toldWriting = false;
    bool read = inode->handles > inode->writers;
    inode->toldOpen &= read;
    if (!inode->toldOpen) return;
  }
  mds_.open(inode->id, false, [pass](Result<Node>) {});
}

}  // namespace trainfs::client
