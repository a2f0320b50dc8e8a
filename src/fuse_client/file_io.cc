#include "fuse_client/file_io.h"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "striping/layout.h"

namespace trainfs::client {

namespace {

// Each is needed only if others have set the size meanwhile; who sets it all the time is not waited
// for.
constexpr uint32_t kReportsPerQuestion = 3;

Time realtime() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return {now.tv_sec, static_cast<uint32_t>(now.tv_nsec)};
}

// False: nobody waits for it any more.
bool begin(const TransferPtr& transfer) {
  return transfer == nullptr || transfer->begin();
}

Unwanted unwantedOf(const TransferPtr& transfer) {
  return transfer == nullptr ? nullptr : transfer->unwanted();
}

bool exists(const Layout& layout, const ObjectId& object) {
  auto& flags = layout.components[object.component].exists;
  return object.stripe < flags.size() && flags[object.stripe];
}

}  // namespace

void FileIo::attributes(InodePtr inode, Answer<Inodes::Taken> answer) {
  askAttributes(inode, kReportsPerQuestion, std::move(answer));
}

// What others have overtaken is reported first: with that the MDS knows that it has to ask the
// objects.
void FileIo::askAttributes(const InodePtr& inode, uint32_t reportsLeft,
                           Answer<Inodes::Taken> answer) {
  bool overtaken;
  {
    std::unique_lock lock(inode->mutex);
    overtaken = reportsLeft != 0 && inode->overtaken();
    if (!overtaken && inode->known && coherence_.mayCache()) {
      Inodes::Taken taken{inode->present(), true};
      lock.unlock();
      return answer(taken);
    }
  }
  if (overtaken) {
    return report(inode, [=, this, answer = std::move(answer)](Status reported) {
      if (!reported) return answer(reported.error());
      askAttributes(inode, reportsLeft - 1, answer);
    });
  }
  auto askedAt = inodes_.now();
  mds_.getattr(inode->id, [=, this, answer = std::move(answer)](Result<Node> node) {
    if (!node) return answer(node.error());
    auto taken = inodes_.take(*inode, *node, askedAt);
    bool again;
    {
      std::lock_guard lock(inode->mutex);
      again = reportsLeft != 0 && inode->overtaken();
    }
    if (again) return askAttributes(inode, reportsLeft, answer);
    answer(taken);
  });
}

// ---- reading ----

void FileIo::read(InodePtr inode, uint64_t offset, std::span<std::byte> into, Answer<size_t> answer,
                  TransferPtr transfer) {
  auto read = [=, this, answer = std::move(answer)](Pass pass) mutable {
    attributes(inode, [=, this, answer = std::move(answer),
                       pass = std::move(pass)](Result<Inodes::Taken> taken) mutable {
      if (!taken) return answer(taken.error());
      readNow(inode, offset, into, std::move(pass), std::move(answer), transfer);
    });
  };
  inode->access->shared(std::move(read), transfer.get());
}

void FileIo::readNow(const InodePtr& inode, uint64_t offset, std::span<std::byte> into, Pass pass,
                     Answer<size_t> answer, const TransferPtr& transfer) {
  if (!begin(transfer)) return answer(Errno(EINTR));
  uint64_t size;
  std::shared_ptr<const Layout> layout;
  {
    std::lock_guard lock(inode->mutex);
    size = inode->present().sizeBytes;
    layout = inode->layout;
  }
  if (!layout) return answer(Errno(EIO));
  if (offset >= size) return answer(size_t{0});
  into = into.first(std::min<uint64_t>(into.size(), size - offset));
  bool alone = coherence_.mayCache();

  auto plan = striping::split(inode->id, *layout, {offset, into.size()});
  std::vector<ReadPiece> pieces;
  pieces.reserve(plan.extents.size());
  size_t covered = 0;
  for (auto& extent : plan.extents) {
    auto piece = into.subspan(extent.fileOffsetBytes - offset, extent.lengthBytes);
    covered += piece.size();
    bool there = exists(*layout, extent.object);
    if (!there && alone)
      std::memset(piece.data(), 0, piece.size());  // never written by anybody
    else
      pieces.push_back({extent, piece, there});
  }
  for (auto& hole : plan.holes) {
    std::memset(into.data() + (hole.offsetBytes - offset), 0, hole.lengthBytes);
    covered += hole.lengthBytes;
  }
  // Sparse beyond the last component's end.
  if (covered < into.size()) std::memset(into.data() + covered, 0, into.size() - covered);
  if (pieces.empty()) return answer(into.size());
  auto done = [bytes = into.size(), answer = std::move(answer), pass](Status status) {
    if (!status) return answer(status.error());
    answer(bytes);
  };
  data_.read(std::move(pieces), std::move(done), unwantedOf(transfer));
}

// ---- writing ----

void FileIo::write(InodePtr inode, uint64_t offset, std::span<const std::byte> data,
                   bool killPrivileges, Answer<size_t> answer, TransferPtr transfer) {
  auto write = [=, this, answer = std::move(answer)](Pass pass) mutable {
    writeNow(inode, offset, data, killPrivileges, {std::move(pass), {}}, std::move(answer),
             transfer);
  };
  inode->access->shared(std::move(write), transfer.get());
}

// The turn first: the wait for another client's should not hold up what this one reads and writes.
void FileIo::append(InodePtr inode, std::span<const std::byte> data, bool killPrivileges,
                    Answer<Appended> answer, TransferPtr transfer) {
  appendTurns_.take(inode->id, [=, this, answer = std::move(answer)](
                                   Result<AppendTurns::TurnPtr> turn) mutable {
    if (!turn) return answer(turn.error());
    auto append = [=, this, turn = *turn, answer = std::move(answer)](Pass pass) mutable {
      attributes(inode, [=, this, hold = Hold{std::move(pass), std::move(turn)},
                         answer = std::move(answer)](Result<Inodes::Taken> taken) mutable {
        if (!taken) return answer(taken.error());
        uint64_t end;
        {
          std::lock_guard lock(inode->mutex);
          end = inode->present().sizeBytes;
        }
        auto appended = [end, answer = std::move(answer)](Result<size_t> bytes) {
          if (!bytes) return answer(bytes.error());
          answer(Appended{end, *bytes});
        };
        writeNow(inode, end, data, killPrivileges, std::move(hold), std::move(appended), transfer);
      });
    };
    inode->access->exclusive(std::move(append), transfer.get());
  });
}

void FileIo::withdraw(const InodePtr& inode, Transfer& transfer, Direction direction) {
  if (transfer.withdraw()) return inode->access->withdraw(&transfer);
  if (direction == Direction::kWrite) inode->access->exclusive([](Pass) {});
  data_.withdraw();
}

void FileIo::writeNow(const InodePtr& inode, uint64_t offset, std::span<const std::byte> data,
                      bool killPrivileges, Hold hold, Answer<size_t> answer,
                      const TransferPtr& transfer) {
  std::shared_ptr<const Layout> layout;
  uint64_t settings;
  bool cutUnknown;
  {
    std::lock_guard lock(inode->mutex);
    layout = inode->layout;
    settings = inode->attributes.settings;
    cutUnknown = inode->cutUnknown;
  }
  if (cutUnknown)
    return whenCutIsKnown(inode, [=, this, answer = std::move(answer),
                                  hold = std::move(hold)](Status known) mutable {
      if (!known) return answer(known.error());
      writeNow(inode, offset, data, killPrivileges, std::move(hold), std::move(answer), transfer);
    });
  if (!layout) return answer(Errno(EIO));
  auto plan = striping::split(inode->id, *layout, {offset, data.size()});
  if (plan.firstUninstantiated) {
    mds_.instantiate(
        inode->id, *plan.firstUninstantiated,
        [=, this, answer = std::move(answer), hold = std::move(hold)](Result<Node> node) mutable {
          if (!node) return answer(node.error());
          inodes_.takeLayout(*inode, *node);
          writeNow(inode, offset, data, killPrivileges, std::move(hold), std::move(answer),
                   transfer);
        });
    return;
  }
  if (plan.extents.empty()) return answer(data.empty() ? Result<size_t>(size_t{0}) : Errno(EFBIG));
  if (!begin(transfer)) return answer(Errno(EINTR));
  auto& last = plan.extents.back();
  SentWrite sent{.offset = offset,
                 .end = last.fileOffsetBytes + last.lengthBytes,
                 .settings = settings,
                 .killPrivileges = killPrivileges};
  sent.pieces.reserve(plan.extents.size());
  for (auto& extent : plan.extents)
    sent.pieces.push_back(
        {extent, data.subspan(extent.fileOffsetBytes - offset, extent.lengthBytes)});

  auto pieces = sent.pieces;
  auto misplaced = hold.turn ? hold.turn->lost() : Misplaced();
  auto done = [=, this, sent = std::move(sent), answer = std::move(answer),
               hold = std::move(hold)](Result<Verifiers> verifiers) {
    if (!verifiers) {
      std::lock_guard lock(inode->mutex);
      inode->strayBytes |= sent.end > inode->present().sizeBytes;
      inode->pastUnknown = true;
      return answer(verifiers.error());
    }
    bool privileged = wrote(inode, sent, *verifiers);
    if (!privileged) return answer(size_t{sent.end - offset});
    report(inode, [this, inode, answer, bytes = sent.end - offset](Status reported) {
      if (!reported) return answer(reported.error());
      // A write makes the kernel ask for new times and size, but not for a new mode.
      forgetMode_(inode->id, [answer, bytes] { answer(size_t{bytes}); });
    });
  };
  data_.write(std::move(pieces), std::move(done), unwantedOf(transfer), std::move(misplaced));
}

// A truncation that has failed may be done all the same: it was given up, or its session has ended.
// What is written before that may be cut. First it must have come to the MDS, or never will; then
// the MDS, asked about the file, answers when it is over. The inode's access is the caller's, so no
// further one begins.
void FileIo::whenCutIsKnown(const InodePtr& inode, Answer<Done> next) {
  mds_.settled(inode->id, [=, this, next = std::move(next)](Status settled) {
    if (!settled) return next(settled);
    mds_.getattr(inode->id, [inode, next](Result<Node> node) {
      if (!node) return next(node.error());
      {
        std::lock_guard lock(inode->mutex);
        inode->cutUnknown = false;
      }
      next(Done{});
    });
  });
}

// mutex held.
void FileIo::noteUnsynced(Inode& inode, const ObjectRef& object, uint64_t verifier) {
  if (verifier == 0) return;  // there is no such object
  auto [at, added] = inode.unsynced.try_emplace(object.object, Unsynced{object.chain, verifier});
  if (added || at->second.verifier == verifier) return;
  inode.losses.add();
  at->second.verifier = verifier;
}

bool FileIo::wrote(const InodePtr& inode, const SentWrite& sent, const Verifiers& verifiers) {
  bool first, privileged;
  {
    std::lock_guard lock(inode->mutex);
    auto& unreported = inode->unreported;
    first = !unreported.any();
    if (sent.offset > inode->present().sizeBytes) inode->grownInOrder = false;
    unreported.add(sent.settings, sent.end, realtime());
    privileged = sent.killPrivileges && (inode->attributes.mode & (S_ISUID | S_ISGID)) != 0;
    unreported.killPrivileges |= privileged;
    std::shared_ptr<Layout> extended;
    for (size_t i = 0; i < sent.pieces.size(); ++i) {
      auto& object = sent.pieces[i].extent.object;
      noteUnsynced(*inode, {object, sent.pieces[i].extent.chain}, verifiers[i]);
      if (!inode->layout || object.component >= inode->layout->components.size() ||
          object.generation != inode->layout->generation ||
          exists(extended ? *extended : *inode->layout, object))
        continue;
      if (!extended) extended = std::make_shared<Layout>(*inode->layout);
      extended->components[object.component].exists[object.stripe] = true;
      unreported.exists.emplace_back(object.component, object.stripe);
    }
    if (extended) inode->layout = std::move(extended);
  }
  if (first) inodes_.noteUnreported(inode);
  return privileged;
}

// ---- attributes and size ----

void FileIo::setAttributes(InodePtr inode, Identity identity, SetAttrOp op,
                           Answer<Inodes::Taken> answer) {
  if ((op.mask & kSetSizeOrMtime) == 0)
    return setAttributesNow(inode, std::move(identity), op, std::move(answer));
  // Alone on the inode: no write across a new size, and no report under way.
  inode->access->exclusive([=, this, answer = std::move(answer)](Pass pass) {
    auto set = [=, this](Result<Inodes::Taken> taken) {
      if (!taken) return answer(taken.error());
      inode->syncs->exclusive([=, this](Pass syncPass) {
        auto finish = [answer, pass, syncPass](Result<Inodes::Taken> set) { answer(set); };
        setAttributesNow(inode, identity, op, finish);
      });
    };
    if (op.mask & kSetSize) return attributes(inode, set);
    set(Inodes::Taken{});
  });
}

void FileIo::setAttributesNow(const InodePtr& inode, const Identity& identity, SetAttrOp op,
                              Answer<Inodes::Taken> answer) {
  if (op.mask & (kSetSize | kGrowSize)) cutIfNeeded(*inode, op);
  mds_.execute(identity, op, [=, this, answer = std::move(answer)](Result<Outcome> outcome) {
    if (!outcome) {
      std::lock_guard lock(inode->mutex);
      inode->cutUnknown |= (op.mask & kCutObjects) != 0;
    }
    if (!outcome) return answer(outcome.error());
    if (!outcome->node) return answer(Errno(ESTALE));
    if (op.mask & (kSetSizeOrMtime | kGrowSize)) {
      // From here on the MDS's word counts; what it was not told yet is only which objects exist.
      std::lock_guard lock(inode->mutex);
      inode->unreported.noteSet(op.mask & kSetSize, outcome->node->attributes.settings);
      if (op.mask & (kSetSize | kGrowSize)) inode->strayBytes = false;
    }
    answer(inodes_.takeChange(*inode, *outcome->node));
  });
}

// Before the file may have that size, objects that reach beyond it are cut. Growing cuts nothing,
// unless a failed write may have left something behind the present end.
void FileIo::cutIfNeeded(Inode& inode, SetAttrOp& op) {
  std::lock_guard lock(inode.mutex);
  uint64_t present = inode.present().sizeBytes;
  if (!inode.layout || (op.sizeBytes >= present && !inode.strayBytes)) return;
  op.keepBytes = std::min(op.sizeBytes, present);
  bool alone = coherence_.mayCache() && !inode.strayBytes;
  auto objects = striping::objectsOf(inode.id, *inode.layout, alone);
  auto reachesBeyond = [&](const striping::PlacedObject& placed) {
    auto size = [&](uint64_t fileBytes) {
      return striping::objectSize(*inode.layout, placed.object.component, placed.object.stripe,
                                  fileBytes);
    };
    return !alone || size(op.keepBytes) < size(present);
  };
  if (std::ranges::any_of(objects, reachesBeyond)) op.mask |= kCutObjects;
}

void FileIo::punch(InodePtr inode, FileRange range, bool extend, Answer<Done> answer) {
  inode->access->exclusive([=, this, answer = std::move(answer)](Pass pass) {
    attributes(inode, [=, this](Result<Inodes::Taken> taken) {
      if (!taken) return answer(taken.error());
      auto finish = [answer, pass](Status status) { answer(status); };
      if (!extend) return punchNow(inode, range, finish);
      extendNow(inode, range.endBytes(), [=, this](Status extended) {
        if (!extended) return finish(extended);
        punchNow(inode, range, finish);
      });
    });
  });
}

void FileIo::punchNow(const InodePtr& inode, FileRange range, Answer<Done> answer) {
  std::vector<ObjectExtent> extents;
  bool cutUnknown;
  {
    std::lock_guard lock(inode->mutex);
    cutUnknown = inode->cutUnknown;
  }
  if (cutUnknown)
    return whenCutIsKnown(inode, [=, this, answer = std::move(answer)](Status known) {
      if (!known) return answer(known);
      punchNow(inode, range, answer);
    });
  {
    std::lock_guard lock(inode->mutex);
    uint64_t size = inode->present().sizeBytes;
    if (!inode->layout) return answer(Errno(EIO));
    if (range.offsetBytes < size) {
      FileRange inside{range.offsetBytes, std::min(range.lengthBytes, size - range.offsetBytes)};
      extents = striping::existingRanges(inode->id, *inode->layout, inside);
    }
    inode->grownInOrder = false;
  }
  std::vector<ObjectRef> objects;
  for (auto& extent : extents) objects.push_back({extent.object, extent.chain});
  auto punched = [=, this](Result<Verifiers> verifiers) {
    {
      std::lock_guard lock(inode->mutex);
      if (!verifiers) inode->pastUnknown = true;
      for (size_t i = 0; verifiers && i < objects.size(); ++i)
        noteUnsynced(*inode, objects[i], (*verifiers)[i]);
    }
    if (!verifiers) return answer(verifiers.error());
    {
      std::lock_guard lock(inode->mutex);
      inode->unreported.add(inode->attributes.settings, 0, realtime());
    }
    inodes_.noteUnreported(inode);
    answer(Done{});
  };
  if (extents.empty()) return punched(Verifiers{});
  data_.punch(std::move(extents), punched);
}

void FileIo::extend(InodePtr inode, uint64_t sizeBytes, Answer<Done> answer) {
  inode->access->exclusive([=, this, answer = std::move(answer)](Pass pass) {
    attributes(inode, [=, this](Result<Inodes::Taken> taken) {
      if (!taken) return answer(taken.error());
      extendNow(inode, sizeBytes, [answer, pass](Status status) { answer(status); });
    });
  });
}

// No object says how long the file is now: the MDS must know before the caller does. Under
// exclusive access.
void FileIo::extendNow(const InodePtr& inode, uint64_t sizeBytes, Answer<Done> answer) {
  {
    std::lock_guard lock(inode->mutex);
    if (sizeBytes <= inode->present().sizeBytes) return answer(Done{});
    inode->grownInOrder = false;
  }
  inode->syncs->exclusive([=, this, answer = std::move(answer)](Pass pass) {
    SetAttrOp op{.inode = inode->id, .mask = kGrowSize, .sizeBytes = sizeBytes};
    setAttributesNow(inode, {}, op, [answer, pass](Result<Inodes::Taken> set) {
      answer(set ? Status(Done{}) : Status(set.error()));
    });
  });
}

}  // namespace trainfs::client
