#include "fixture.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>

#include "lock_wire.h"
#include "mds/state_machine.h"
#include "mds/wire.h"
#include "striping/layout.h"
#include "trainfs/object_id.h"

namespace trainfs::mds::test {

namespace {

constexpr auto kConditionMax = std::chrono::seconds(60);

std::string hexOf(capnp::Data::Reader id) {
  return objectIdHex(decodeObjectId(id.begin()));
}

void encode(const std::vector<OpenedFile>& in, capnp::List<rpc::OpenFile>::Builder out) {
  for (size_t i = 0; i < in.size(); ++i) {
    out[i].setInode(in[i].inode.value);
    out[i].setWriting(in[i].writing);
  }
}

}  // namespace

// ---- the peers' callbacks ----

kj::Promise<void> FakeCallback::recall(RecallContext context) {
  notes_->events.push_back("recall");
  encode(notes_->opens, context.getResults().initOpens(notes_->opens.size()));
  if (notes_->answers) return kj::READY_NOW;
  auto held = kj::newPromiseAndFulfiller<void>();
  notes_->held.push_back(kj::mv(held.fulfiller));
  return kj::mv(held.promise);
}

kj::Promise<void> FakeCallback::mayCache(MayCacheContext) {
  notes_->events.push_back("mayCache");
  return kj::READY_NOW;
}

kj::Promise<void> FakeCallback::mapChanged(MapChangedContext context) {
  notes_->mapVersion = context.getParams().getMap().getVersion();
  return kj::READY_NOW;
}

kj::Promise<void> FakeOst::destroy(DestroyContext context) {
  for (auto object : context.getParams().getObjects()) {
    notes_->destroyed.push_back(hexOf(object));
    notes_->objects.erase(hexOf(object));
  }
  return kj::READY_NOW;
}

kj::Promise<void> FakeOst::stat(StatContext context) {
  ++notes_->stats;
  auto objects = context.getParams().getObjects();
  auto results = context.getResults().initResults(objects.size());
  for (uint32_t i = 0; i < objects.size(); ++i) {
    auto name = hexOf(objects[i]);
    if (notes_->damaged.contains(name)) results[i].setError(EIO);
    auto found = notes_->objects.find(name);
    if (found == notes_->objects.end()) continue;
    results[i].setExists(true);
    results[i].setSizeBytes(found->second);
    results[i].setUsedBytes(found->second);
  }
  return kj::READY_NOW;
}

kj::Promise<void> FakeOst::fence(FenceContext context) {
  notes_->fenced.push_back(context.getParams().getSession());
  if (notes_->answersFences) return kj::READY_NOW;
  auto held = kj::newPromiseAndFulfiller<void>();
  notes_->held.push_back(kj::mv(held.fulfiller));
  return kj::mv(held.promise);
}

kj::Promise<void> FakeOst::truncate(TruncateContext context) {
  ++notes_->truncations;
  if (!notes_->cuts) {
    auto held = kj::newPromiseAndFulfiller<void>();
    notes_->held.push_back(kj::mv(held.fulfiller));
    co_await held.promise;
  }
  auto cuts = context.getParams().getCuts();
  auto errors = context.getResults().initErrors(cuts.size());
  for (uint32_t i = 0; i < cuts.size(); ++i) {
    auto name = hexOf(cuts[i].getObject());
    auto found = notes_->objects.find(name);
    if (notes_->uncuttable.contains(name))
      errors.set(i, EIO);
    else if (found != notes_->objects.end())
      found->second = std::min(found->second, cuts[i].getSizeBytes());
  }
}

Connection::Connection(Fixture& fixture)
    : stream(fixture.io.provider->getNetwork()
                 .parseAddress("127.0.0.1", fixture.server->port())
                 .then([](kj::Own<kj::NetworkAddress> address) {
                   auto connected = address->connect();
                   return connected.attach(kj::mv(address));
                 })
                 .wait(fixture.io.waitScope)),
      rpc(*stream),
      mds(rpc.bootstrap().castAs<rpc::Mds>()) {}

// ---- clients ----

Client::Client(Fixture& fixture, std::string name) : fixture(fixture), name(std::move(name)) {}

kj::Promise<void> Client::opening(uint64_t resumeId, std::vector<OpenedFile> opens,
                                  std::vector<FileLock> locks) {
  connection = std::make_unique<Connection>(fixture);
  auto request = connection->mds.openSessionRequest();
  auto in = request.initRequest();
  in.setFsname("trainfs");
  in.setClientName(name.c_str());
  in.setCallback(kj::heap<FakeCallback>(notes));
  in.setResumeId(resumeId);
  in.setResumeEpoch(epoch);
  in.setResumption(++resumptions);
  in.setCaching(caching);
  encode(opens, in.initOpens(opens.size()));
  auto claimed = in.initLocks(locks.size());
  for (size_t i = 0; i < locks.size(); ++i) encodeLock(locks[i], claimed[i]);
  return request.send().then([this](auto response) {
    auto opened = response.getOpened();
    error = opened.getError();
    message = opened.getMessage().cStr();
    if (error != 0) return;
    session = opened.getSession();
    id = opened.getId();
    epoch = opened.getEpoch();
    mayCache = opened.getMayCache();
    removed.clear();
    for (auto inode : opened.getRemoved()) removed.push_back(inode);
    mapVersion = opened.getMap().getVersion();
  });
}

void Client::open() {
  opening().wait(fixture.io.waitScope);
  INFO(message);
  REQUIRE(error == 0);
}

void Client::resume(std::vector<OpenedFile> opens, std::vector<FileLock> locks) {
  opening(id, std::move(opens), std::move(locks)).wait(fixture.io.waitScope);
}

void Client::disconnect() {
  session = nullptr;
  connection = nullptr;
  fixture.settle();
}

bool Client::renew() {
  return KJ_ASSERT_NONNULL(session).renewRequest().send().wait(fixture.io.waitScope).getValid();
}

Client::Reply Client::execute(const std::function<void(rpc::Operation::Builder)>& fill) {
  return executeAs(7, ++sequence_, fill);
}

Client::Reply Client::executeAs(uint16_t slot, uint64_t sequence,
                                const std::function<void(rpc::Operation::Builder)>& fill) {
  auto request = KJ_ASSERT_NONNULL(session).executeRequest();
  request.setSlot(slot);
  request.setSequence(sequence);
  request.initIdentity().setUid(1000);
  fill(request.initOp());
  return request.send().wait(fixture.io.waitScope);
}

InodeId Client::create(const std::string& name, bool writing) {
  auto response = execute([&](rpc::Operation::Builder op) {
    auto create = op.initCreate();
    create.setParent(kRootInode.value);
    create.setName(name.c_str());
    create.setMode(S_IFREG | 0644);
    create.setExclusive(true);
    create.setWriting(writing);
  });
  REQUIRE(response.getReply().getError() == 0);
  return {response.getReply().getNode().getAttributes().getInode()};
}

int Client::unlink(const std::string& name, std::vector<InodeId> keepOpen) {
  auto response = execute([&](rpc::Operation::Builder op) {
    auto unlink = op.initUnlink();
    unlink.setParent(kRootInode.value);
    unlink.setName(name.c_str());
    auto keep = unlink.initKeepOpen(keepOpen.size());
    for (size_t i = 0; i < keepOpen.size(); ++i) keep.set(i, keepOpen[i].value);
  });
  return response.getReply().getError();
}

kj::Promise<int> Client::unlinking(const std::string& name) {
  auto request = KJ_ASSERT_NONNULL(session).executeRequest();
  request.setSlot(7);
  request.setSequence(++sequence_);
  request.initIdentity().setUid(1000);
  auto unlink = request.initOp().initUnlink();
  unlink.setParent(kRootInode.value);
  unlink.setName(name.c_str());
  return request.send().then([](auto response) { return int{response.getReply().getError()}; });
}

int Client::openFile(InodeId inode, bool writing) {
  auto request = KJ_ASSERT_NONNULL(session).openRequest();
  request.setInode(inode.value);
  request.setWriting(writing);
  return request.send().wait(fixture.io.waitScope).getError();
}

void Client::release(InodeId inode) {
  auto request = KJ_ASSERT_NONNULL(session).releaseRequest();
  request.setInode(inode.value);
  REQUIRE(request.send().wait(fixture.io.waitScope).getError() == 0);
}

int Client::truncate(InodeId inode, uint64_t sizeBytes) {
  auto response = execute([&](rpc::Operation::Builder op) {
    auto set = op.initSetattr();
    set.setInode(inode.value);
    set.setMask(kSetSize);
    set.setSizeBytes(sizeBytes);
  });
  return response.getReply().getError();
}

int Client::report(InodeId inode, uint64_t sizeBytes, bool stillWriting, uint64_t settings) {
  auto response = execute([&](rpc::Operation::Builder op) {
    auto report = op.initReport();
    report.setInode(inode.value);
    report.setSizeBytes(sizeBytes);
    report.setStillWriting(stillWriting);
    report.setSettings(settings);
  });
  return response.getReply().getError();
}

capnp::Response<rpc::Session::GetattrResults> Client::getattr(InodeId inode) {
  auto request = KJ_ASSERT_NONNULL(session).getattrRequest();
  request.setInode(inode.value);
  return request.send().wait(fixture.io.waitScope);
}

capnp::Response<rpc::Session::LookupResults> Client::lookup(const std::string& name) {
  auto request = KJ_ASSERT_NONNULL(session).lookupRequest();
  request.setParent(kRootInode.value);
  request.setName(name.c_str());
  return request.send().wait(fixture.io.waitScope);
}

std::vector<std::string> Client::list() {
  auto request = KJ_ASSERT_NONNULL(session).readdirRequest();
  request.setInode(kRootInode.value);
  request.setEntriesMax(1000);
  auto response = request.send().wait(fixture.io.waitScope);
  REQUIRE(response.getError() == 0);
  REQUIRE(response.getEnd());
  std::vector<std::string> names;
  for (auto entry : response.getEntries()) names.push_back(entry.getName().cStr());
  std::sort(names.begin(), names.end());
  return names;
}

// ---- OSTs ----

namespace {

void fillStats(rpc::OstStats::Builder stats) {
  stats.setTotalBytes(100 * kGiB);
  stats.setFreeBytes(60 * kGiB);
  stats.setAvailableBytes(50 * kGiB);
}

}  // namespace

int OstClient::registerOst(const std::string& uuid) {
  connection_ = std::make_unique<Connection>(fixture_);
  auto request = connection_->mds.registerOstRequest();
  auto in = request.initRequest();
  in.setFsname("trainfs");
  in.setIndex(index_);
  in.setUuid(uuid.empty() ? "uuid-" + std::to_string(index_) : uuid);
  in.initPorts(1).set(0, port);
  in.setStart(start);
  in.setAcceptedStart(acceptedStart);
  in.setOlderCopy(olderCopy);
  fillStats(in.initStats());
  request.setControl(kj::heap<FakeOst>(notes));
  auto response = request.send().wait(fixture_.io.waitScope);
  message = response.getMessage().cStr();
  if (response.getError() == 0) lease_ = response.getLease();
  return response.getError();
}

void OstClient::renew() {
  auto request = KJ_ASSERT_NONNULL(lease_).renewRequest();
  fillStats(request.initStats());
  request.send().wait(fixture_.io.waitScope);
}

bool OstClient::checkSession(uint64_t session, uint32_t epoch) {
  auto request = KJ_ASSERT_NONNULL(lease_).checkSessionRequest();
  request.setSession(session);
  request.setEpoch(epoch);
  return request.send().wait(fixture_.io.waitScope).getValid();
}

void OstClient::disconnect() {
  lease_ = nullptr;
  connection_ = nullptr;
  fixture_.settle();
}

// ---- the server ----

Fixture::Fixture() {
  auto txn = store.begin();
  format(*txn, "trainfs", 0, {1, 0});
  txn->commit();
  start();
}

Fixture::~Fixture() {
  stop();
}

void Fixture::start() {
  auto address = io.provider->getNetwork().parseAddress("127.0.0.1", 0).wait(io.waitScope);
  log = kj::heap<LmdbLog>(store);
  auto listener = address->listen();
  // So that a test can see when the server has stopped reading.
  int few = 256 * 1024;
  listener->setsockopt(SOL_SOCKET, SO_RCVBUF, &few, sizeof few);
  server = kj::heap<Server>(store, *log, timer, kj::mv(listener), options);
}

void Fixture::stop() {
  if (server.get() != nullptr) server->stop();
  passThroughLog();
  server = nullptr;
  log = nullptr;
}

void Fixture::advance(kj::Duration duration) {
  auto end = timer.now() + duration;
  while (timer.now() < end) {
    timer.advanceTo(std::min(end, timer.now() + 250 * kj::MILLISECONDS));
    settle();
  }
}

void Fixture::until(const std::function<bool()>& condition) {
  auto giveUp = std::chrono::steady_clock::now() + kConditionMax;
  while (!condition()) {
    REQUIRE(std::chrono::steady_clock::now() < giveUp);
    settle();
  }
}

// The loop, the sockets and the log's writer take turns: quiet means that all of them are.
void Fixture::settle() {
  for (int quiet = 0; quiet < 3; ++quiet) {
    passThroughLog();
    io.waitScope.poll();
    io.provider->getTimer().afterDelay(200 * kj::MICROSECONDS).wait(io.waitScope);
  }
}

void Fixture::passThroughLog() {
  if (log.get() != nullptr) log->append({.op = ReapedOp{}}).wait(io.waitScope);  // changes nothing
}

SharedFile::SharedFile(Fixture& fixture) : ost(fixture, 0), a(fixture, "a"), b(fixture, "b") {
  REQUIRE(ost.registerOst() == 0);
  a.open();
  b.open();
  file = a.create("f", true);
}

std::vector<std::string> objectsOf(Fixture& fixture, InodeId inode) {
  auto node = loadNode(*fixture.store.snapshot(), inode);
  REQUIRE(node.ok());
  std::vector<std::string> names;
  for (auto& placed : striping::objectsOf(inode, node->layout, false))
    names.push_back(objectIdHex(placed.object));
  return names;
}

}  // namespace trainfs::mds::test
