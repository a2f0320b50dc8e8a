// The call for a lock, which may wait at the MDS for days, until it is granted or given up.
#pragma once

#include "fuse_client/mds_call.h"
#include "trainfs/file_lock.h"

namespace trainfs::client {

// MDS thread, but for the number.
struct LockWait {
  explicit LockWait(uint64_t number) : number(number) {}
  const uint64_t number;  // 0: it does not wait
  bool givenUp = false;
  kj::Own<kj::PromiseFulfiller<int>> drop;  // the call that is with the server
};

class LockCall final : public MdsCall {
 public:
  LockCall(const FileLock& lock, std::shared_ptr<LockWait> wait, Answer<Done> answer);

  kj::Promise<void> send(rpc::Session::Client& session) override;
  void fail(int code) override { answer(code); }  // from then on it undoes what it may have done

  static void giveUp(LockWait& wait);

 private:
  kj::Promise<int> ask(rpc::Session::Client& session);
  kj::Promise<void> undo(rpc::Session::Client& session);
  void answer(int error);

  const FileLock lock_;
  std::shared_ptr<LockWait> wait_;
  Answer<Done> answer_;  // null: answered
};

class UnlockCall final : public MdsCall {
 public:
  UnlockCall(const FileLock& lock, Answer<Done> answer);

  kj::Promise<void> send(rpc::Session::Client& session) override;
  void fail(int code) override;

 private:
  const FileLock lock_;
  Answer<Done> answer_;  // null: answered
};

}  // namespace trainfs::client
