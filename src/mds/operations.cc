#include "mds/operations.h"

#include <sys/stat.h>

#include <algorithm>
#include <type_traits>

#include "mds/state_machine.h"
#include "striping/layout_text.h"

namespace trainfs::mds {

namespace {

constexpr uint64_t kEndThisSession = 1;  // Outcome::value beside ESTALE, see state_machine.h

bool makesGarbage(const Operation& op) {
  return std::holds_alternative<UnlinkOp>(op) || std::holds_alternative<RenameOp>(op) ||
         std::holds_alternative<SetLayoutOp>(op);
}

bool cutsObjects(const Operation& op) {
  auto* set = std::get_if<SetAttrOp>(&op);
  return set != nullptr && (set->mask & kCutObjects) != 0;
}

// The file whose size or objects it changes, so that it comes before a truncation or after it.
InodeId fileShapedBy(const Operation& op) {
  auto* set = std::get_if<SetAttrOp>(&op);
  auto* xattr = std::get_if<SetXattrOp>(&op);
  if (set != nullptr && (set->mask & (kSetSize | kGrowSize))) return set->inode;
  if (xattr != nullptr && xattr->name == kLayoutXattr) return xattr->inode;
  return kNoInode;
}

}  // namespace

// ---- changes ----

kj::Promise<ChangeReply> Operations::execute(std::shared_ptr<Session> session,
                                             ChangeRequest request) {
  auto& truncations = parts_.truncations;
  const auto shaped = fileShapedBy(request.op);
  for (auto deadline = truncations.deadline(); truncations.has(shaped);)
    co_await truncations.changed(deadline);
  while (mustWaitForNames(request.op)) co_await parts_.names.changed();
  auto hold = parts_.names.hold();
  if (auto good = prepare(request, *session, hold); !good && !isRepeated(request, *session))
    co_return ChangeReply{.error = good.error().code()};

  bool reap = makesGarbage(request.op);
  bool report = std::holds_alternative<ReportOp>(request.op);
  auto* create = std::get_if<CreateOp>(&request.op);
  bool opens = create != nullptr && request.opening && S_ISREG(create->mode);
  bool writing = opens && create->writing;
  bool cuts = cutsObjects(request.op);
  Command command{.session = session->id,
                  .slot = request.slot,
                  .sequence = request.sequence,
                  .identity = std::move(request.identity),
                  .now = parts_.choices.now(),
                  .op = std::move(request.op)};
  auto change = cuts ? truncations.run(std::move(command)) : parts_.log.append(std::move(command));
  auto outcome = co_await change;
  ChangeReply reply{.error = outcome.error, .existed = outcome.existed};
  reply.sessionOver = outcome.error == ESTALE && outcome.value == kEndThisSession;
  if (reply.error != 0) co_return reply;
  if (reap) parts_.reaper.kick();
  if (report && outcome.value == kSizeToBeAsked) parts_.recovery.kick();
  if (opens) {
    if (auto good = co_await created(session, outcome.inode, writing); !good) {
      // Without a name nobody could ever reach it again.
      if (outcome.value == kMadeUnnamed) (void)co_await release(session, outcome.inode);
      co_return ChangeReply{.error = good.error().code()};
    }
  }
  if (outcome.inode == kNoInode) co_return reply;
  // A recall waits for reports: these do not wait for OSTs that are away.
  if (report && truncations.has(outcome.inode)) co_return reply;
  bool others = false;
  {
    auto view = parts_.store.snapshot();
    if (auto node = loadNode(*view, outcome.inode)) reply.node = *std::move(node);
    others = reply.node && writtenByOthers(*view, *session, *reply.node);
  }
  if (others) (void)co_await settle(*session, *reply.node);
  co_return reply;
}

// What prepare() refuses may have been done before, when there was nothing to refuse, and the
// answer was lost: then the slot knows it, in every snapshot that has what was done. apply() gives
// the answer.
bool Operations::isRepeated(const ChangeRequest& request, const Session& session) {
  Command command{.session = session.id, .slot = request.slot, .sequence = request.sequence};
  return mds::isRepeated(command, *parts_.store.snapshot());
}

// The client has the file open from now on. Its mark is made again if a resumption in between has
// taken the open for a lost one.
kj::Promise<Status> Operations::created(std::shared_ptr<Session> session, InodeId inode,
                                        bool writing) {
  if (!parts_.sessions.opened(*session, {inode, writing})) co_return Errno(ENFILE);
  if (!writing) co_return Done{};
  auto writers = writersOf(*parts_.store.snapshot(), inode);
  if (std::find(writers.begin(), writers.end(), session->id) != writers.end()) co_return Done{};
  auto outcome = co_await parts_.commands.run(OpenWriteOp{inode}, session->id);
  if (outcome.error != 0) co_return Errno(outcome.error);
  co_return Done{};
}

// Whoever removes a name must know which inode that is when its command is applied.
bool Operations::mustWaitForNames(const Operation& op) const {
  if (auto* unlink = std::get_if<UnlinkOp>(&op))
    return parts_.names.has(unlink->parent, unlink->name);
  if (auto* rmdir = std::get_if<RmdirOp>(&op)) return parts_.names.has(rmdir->parent, rmdir->name);
  if (auto* rename = std::get_if<RenameOp>(&op))
    return parts_.names.has(rename->parent, rename->name) ||
           parts_.names.has(rename->newParent, rename->newName);
  return false;
}

Status Operations::prepare(ChangeRequest& request, const Session& session,
                           NamesInFlight::Hold& hold) {
  if (auto* create = std::get_if<CreateOp>(&request.op)) {
    if (!create->unnamed) hold.name(create->parent, create->name);
    return prepareCreate(*create, request.layoutText);
  }
  if (auto* link = std::get_if<LinkOp>(&request.op)) {
    hold.name(link->parent, link->name);
  } else if (auto* rmdir = std::get_if<RmdirOp>(&request.op)) {
    prepareRemoval(rmdir->parent, rmdir->name, request, session, hold, rmdir->holders);
  } else if (auto* unlink = std::get_if<UnlinkOp>(&request.op)) {
    prepareRemoval(unlink->parent, unlink->name, request, session, hold, unlink->holders);
  } else if (auto* rename = std::get_if<RenameOp>(&request.op)) {
    hold.name(rename->parent, rename->name);
    prepareRemoval(rename->newParent, rename->newName, request, session, hold, rename->holders);
  } else {
    return prepareLayout(request);
  }
  return Done{};
}

Status Operations::prepareCreate(CreateOp& op, const std::string& layoutText) {
  op.newInode = parts_.choices.newInode();
  bool regular = S_ISREG(op.mode);
  if (!layoutText.empty()) {
    auto parsed = striping::parseLayout(layoutText);
    if (!parsed.error.empty()) return Errno(EINVAL);
    op.layout = std::move(parsed.layout);
  } else if (regular) {
    op.layout = inheritedLayout(*parts_.store.snapshot(), op.parent);
  }
  if (!regular) return Done{};
  auto placed = parts_.choices.place(op.layout);
  if (!placed) return placed.error();
  op.layout = *std::move(placed);
  return Done{};
}

// The attribute trainfs.layout is not stored as one.
Status Operations::prepareLayout(ChangeRequest& request) {
  auto* set = std::get_if<SetXattrOp>(&request.op);
  auto* remove = std::get_if<RemoveXattrOp>(&request.op);
  if (remove != nullptr && remove->name == kLayoutXattr) {
    request.op = SetLayoutOp{.inode = remove->inode};
  } else if (set != nullptr && set->name == kLayoutXattr) {
    auto node = loadNode(*parts_.store.snapshot(), set->inode);
    if (!node) return node.error();
    auto layout = newLayout(*node, set->value);
    if (!layout) return layout.error();
    request.op = SetLayoutOp{.inode = set->inode,
                             .layout = *std::move(layout),
                             .create = set->create,
                             .replace = set->replace};
  }
  return Done{};
}

Result<Layout> Operations::newLayout(const Node& node, std::string_view text) {
  auto parsed = striping::parseLayout(text);
  if (!parsed.error.empty() || parsed.layout.components.empty()) return Errno(EINVAL);
  if (!namesKnownOsts(parsed.layout)) return Errno(EINVAL);
  if (!S_ISREG(node.attributes.mode)) return parsed.layout;
  return parts_.choices.place(parsed.layout);
}

// A directory's default is not placed, and would make every create in it fail.
bool Operations::namesKnownOsts(const Layout& layout) const {
  auto& known = parts_.osts.all();
  for (auto& component : layout.components) {
    if (component.stripeOffset != kAnyOst && !known.contains(component.stripeOffset)) return false;
    for (uint32_t ost : component.ostList)
      if (!known.contains(ost)) return false;
  }
  return true;
}

void Operations::prepareRemoval(InodeId parent, const std::string& name,
                                const ChangeRequest& request, const Session& session,
                                NamesInFlight::Hold& hold,
                                std::vector<std::pair<InodeId, SessionId>>& holders) {
  hold.name(parent, name);
  auto victim = mds::lookup(*parts_.store.snapshot(), parent, name);
  if (!victim) return;  // apply() says why
  InodeId inode = victim->attributes.inode;
  hold.doom(inode);
  for (auto holder : parts_.sessions.holders(inode)) holders.emplace_back(inode, holder);
  auto& keepOpen = request.keepOpen;
  if (std::find(keepOpen.begin(), keepOpen.end(), inode) != keepOpen.end())
    holders.emplace_back(inode, session.id);
}

// ---- reads ----

kj::Promise<Result<Node>> Operations::lookup(std::shared_ptr<Session> session, InodeId parent,
                                             std::string_view name) {
  auto view = parts_.store.snapshot();
  auto node = mds::lookup(*view, parent, name);
  bool others = node && writtenByOthers(*view, *session, *node);
  view = nullptr;
  // What is damaged can be looked up all the same, and so be removed.
  if (others) (void)co_await settle(*session, *node);
  co_return node;
}

kj::Promise<Result<Node>> Operations::getattr(std::shared_ptr<Session> session, InodeId inode) {
  auto view = parts_.store.snapshot();
  auto node = loadNode(*view, inode);
  bool others = node && writtenByOthers(*view, *session, *node);
  view = nullptr;
  if (others) {
    if (auto settled = co_await settle(*session, *node); !settled) co_return settled.error();
  }
  co_return node;
}

kj::Promise<Result<DirPage>> Operations::readdir(std::shared_ptr<Session> session, InodeId inode,
                                                 uint64_t cookie, uint32_t entriesMax) {
  auto view = parts_.store.snapshot();
  auto page = mds::readdir(*view, inode, cookie, entriesMax);
  if (!page) co_return page;
  std::vector<Node*> unsettled;
  for (auto& entry : page->entries)
    if (writtenByOthers(*view, *session, entry.node)) unsettled.push_back(&entry.node);
  view = nullptr;
  for (size_t begin = 0; begin < unsettled.size(); begin += kGlimpsesAtOnce) {
    size_t count = std::min(kGlimpsesAtOnce, unsettled.size() - begin);
    auto glimpses = kj::heapArrayBuilder<kj::Promise<Status>>(count);
    for (size_t i = 0; i < count; ++i) glimpses.add(settle(*session, *unsettled[begin + i]));
    co_await kj::joinPromisesFailFast(glimpses.finish());
  }
  co_return page;
}

Result<std::string> Operations::readlink(InodeId inode) {
  return mds::readlink(*parts_.store.snapshot(), inode);
}

Result<std::string> Operations::getxattr(InodeId inode, std::string_view name) {
  return mds::getxattr(*parts_.store.snapshot(), inode, name);
}

Result<std::vector<std::string>> Operations::listxattr(InodeId inode) {
  return mds::listxattr(*parts_.store.snapshot(), inode);
}

Result<NamesPage> Operations::names(InodeId inode, InodeId root, NameCursor after) {
  return namesOf(*parts_.store.snapshot(), inode, root, after);
}

bool Operations::writtenByOthers(const View& view, const Session& session, const Node& node) {
  if (!S_ISREG(node.attributes.mode)) return false;
  if (parts_.truncations.has(node.attributes.inode)) return true;
  if (parts_.sessions.size() == 1 && !parts_.recovery.pending()) return false;
  auto writers = writersOf(view, node.attributes.inode);
  return std::any_of(writers.begin(), writers.end(),
                     [&](SessionId writer) { return writer != session.id; });
}

kj::Promise<Status> Operations::settle(Session& asker, Node& node) {
  ++asker.glimpses;
  KJ_DEFER(--asker.glimpses);
  const InodeId inode = node.attributes.inode;
  auto& truncations = parts_.truncations;
  const auto deadline = truncations.deadline();
  for (int attempt = 0; attempt < kGlimpsesOfOneFile; ++attempt) {
    while (truncations.has(inode)) co_await truncations.changed(deadline);
    {
      auto view = parts_.store.snapshot();
      auto present = loadNode(*view, inode);
      if (!present) co_return present.error();
      node = *std::move(present);
      if (!writtenByOthers(*view, asker, node)) break;
    }
    auto begun = truncations.begun();
    auto truth = co_await parts_.glimpse.ask(inode, node.layout, parts_.glimpse.patience());
    mergeTruth(node, truth);
    if (truth.error != 0) co_return Errno(EIO);
    if (truncations.begun() == begun) break;
    // Maybe of this file: then some objects may have told of before, and some of after.
  }
  co_return Done{};
}

// ---- open files ----

kj::Promise<Result<Node>> Operations::open(std::shared_ptr<Session> session, OpenedFile file) {
  while (parts_.names.doomed(file.inode)) co_await parts_.names.changed();
  auto node = loadNode(*parts_.store.snapshot(), file.inode);
  if (!node) co_return node.error();
  // An orphan belongs to those who had it open when it was unlinked.
  if (node->attributes.links == 0 && !session->opens.contains(file.inode)) co_return Errno(ESTALE);
  if (!parts_.sessions.opened(*session, file)) co_return Errno(ENFILE);
  if (file.writing) {
    auto outcome = co_await parts_.commands.run(OpenWriteOp{file.inode}, session->id);
    if (outcome.error != 0) co_return Errno(outcome.error);
  }
  co_return co_await getattr(kj::mv(session), file.inode);
}

kj::Promise<Status> Operations::release(std::shared_ptr<Session> session, InodeId inode) {
  while (parts_.names.doomed(inode)) co_await parts_.names.changed();
  auto entry = session->opens.find(inode);
  bool wrote = entry != session->opens.end() && entry->second;
  parts_.sessions.released(*session, inode);
  auto node = loadNode(*parts_.store.snapshot(), inode);
  if (!node || (!wrote && node->attributes.links != 0)) co_return Done{};
  auto outcome = co_await parts_.commands.run(ReleaseOp{inode}, session->id);
  parts_.reaper.kick();
  if (outcome.error != 0) co_return Errno(outcome.error);
  co_return Done{};
}

kj::Promise<Result<Node>> Operations::instantiate(std::shared_ptr<Session> session, InodeId inode,
                                                  uint8_t component) {
  // A pause for the writer instead of an error or a lopsided file; ends with the client's
  // connection.
  while (parts_.osts.settling()) co_await parts_.osts.changed();
  auto node = loadNode(*parts_.store.snapshot(), inode);
  if (!node) co_return node.error();
  if (!S_ISREG(node->attributes.mode) || component >= node->layout.components.size())
    co_return Errno(EINVAL);
  auto& wanted = node->layout.components[component];
  if (!wanted.instantiated()) {
    auto chains = parts_.choices.chains(wanted);
    if (!chains) co_return chains.error();
    InstantiateOp op{.inode = inode, .component = component, .chains = *std::move(chains)};
    auto outcome = co_await parts_.commands.run(std::move(op), session->id);
    if (outcome.error != 0) co_return Errno(outcome.error);
  }
  co_return co_await getattr(kj::mv(session), inode);
}

}  // namespace trainfs::mds
