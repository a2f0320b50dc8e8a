#include <kj/debug.h>
#include <sys/eventfd.h>

#include "fuse_client/mds_call.h"

namespace trainfs::client {

MdsInbox::MdsInbox() {
  KJ_SYSCALL(wakeFd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

MdsInbox::~MdsInbox() {
  close();
  ::close(wakeFd_);
}

void MdsInbox::wake() {
  if (awake_) return;
  awake_ = true;
  uint64_t one = 1;
  KJ_SYSCALL(write(wakeFd_, &one, sizeof one));
}

void MdsInbox::put(std::unique_ptr<MdsCall> call) {
  {
    std::unique_lock lock(mutex_);
    bool canWait = std::this_thread::get_id() != reader_;
    notFull_.wait(lock, [&] { return !canWait || closed_ || waiting_.calls.size() < kCallsMax; });
    if (!closed_) {
      waiting_.calls.push_back(std::move(call));
      wake();
      return;
    }
  }
  call->fail(ESHUTDOWN);
}

void MdsInbox::post(std::function<void()> function) {
  std::lock_guard lock(mutex_);
  if (closed_) return;
  waiting_.functions.push_back(std::move(function));
  wake();
}

void MdsInbox::close() {
  Batch rest;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    std::swap(rest, waiting_);
  }
  notFull_.notify_all();
  for (auto& call : rest.calls) call->fail(ESHUTDOWN);
}

MdsInbox::Batch MdsInbox::take() {
  Batch batch;
  {
    std::lock_guard lock(mutex_);
    uint64_t count;
    (void)!read(wakeFd_, &count, sizeof count);
    awake_ = false;
    reader_ = std::this_thread::get_id();
    std::swap(batch, waiting_);
  }
  notFull_.notify_all();
  return batch;
}

}  // namespace trainfs::client
