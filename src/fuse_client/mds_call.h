// One call to the MDS while it waits for its answer, and the two-way path between other threads and
// the MDS thread.
#pragma once

#include <kj/async.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "fuse_client/mds_client.h"
#include "mds.capnp.h"

namespace trainfs::client {

// Owned by the MDS thread once it has left the inbox.
struct MdsCall {
  virtual ~MdsCall() = default;
  // Sends it; when the answer has come, hands it on. Rejects when there was no answer: it is to be
  // sent again.
  virtual kj::Promise<void> send(rpc::Session::Client& session) = 0;
  // Answers with an errno, unless answered already.
  virtual void fail(int code) = 0;

  bool waits = false;  // for other clients: the time that it takes is not the server's
  // It is sent also after it has failed, because of what it leaves at the server: until then
  // nobody would take that away.
  bool lingers = false;
  // Mutations only, but for `touched`.
  bool mutation = false;
  bool urgent = false;
  uint16_t slot = 0;
  uint64_t sequence = 0;
  std::vector<InodeId> touched;  // what it changes, or waits for changes of, as far as is known
  bool givenUp = false;          // its caller was told EIO, its fate is not known yet
};

// What other threads hand to the MDS thread: any number of calls, one wake-up for all that are
// there.
class MdsInbox {
 public:
  static constexpr size_t kCallsMax =
      64 * 1024;  // callers wait beyond: the memory of the mount is bounded

  MdsInbox();
  ~MdsInbox();

  // Any thread; waits for room, but on the MDS thread, which alone makes some.
  void put(std::unique_ptr<MdsCall> call);
  void post(std::function<void()> function);  // any thread; never waits
  void close();                               // calls put from now on fail with ESHUTDOWN

  // MDS thread. Clears the wake-up and takes all that is there.
  struct Batch {
    std::vector<std::unique_ptr<MdsCall>> calls;
    std::vector<std::function<void()>> functions;
  };
  Batch take();
  int wakeFd() const { return wakeFd_; }

 private:
  void wake();

  std::mutex mutex_;
  std::condition_variable notFull_;
  Batch waiting_;
  bool awake_ = false;
  bool closed_ = false;
  std::thread::id reader_;  // who took last: the MDS thread
  int wakeFd_;
};

}  // namespace trainfs::client
