// The messages of one connection, within limits: how large one may be, how long the peer may be
// silent, and how much may wait for a peer that does not take its answers: it is not read until it
// has. Belongs to the MDS event loop.
#pragma once

#include <capnp/rpc-twoparty.h>
#include <capnp/serialize-async.h>
#include <kj/async-io.h>
#include <kj/timer.h>

#include "trainfs/types.h"

namespace trainfs::mds {

// The largest message that has a purpose lists kOpensPerSessionMax open files, 16 bytes each.
inline constexpr size_t kMessageBytesMax = 32 * kMiB;
// The first one only asks for the bootstrap interface: whoever speaks another protocol is told
// apart by it before anything large is received.
inline constexpr size_t kFirstMessageBytesMax = 4 * kKiB;
// Answers that wait for the peer: beyond that, no more of its questions are read.
inline constexpr size_t kQueuedBytesMax = 16 * kMiB;

class PeerStream final : public capnp::MessageStream {
 public:
  struct Patience {
    kj::Duration first;  // until the first message is there as a whole
    kj::Duration next;   // between messages while it is read, and for one batch of answers to be
                         // taken
  };
  PeerStream(kj::AsyncIoStream& stream, kj::Timer& timer, Patience patience);

  // Ends by an exception that says in which way the peer tried our patience. `network` sends
  // through this stream.
  kj::Promise<void> watch(capnp::TwoPartyVatNetwork& network);

  // Why nothing more can be read, if it is not the peer's orderly end.
  const kj::Maybe<kj::Exception>& failure() const { return failure_; }

  using Message = kj::Maybe<capnp::MessageReaderAndFds>;
  using Segments = kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>;
  kj::Promise<Message> tryReadMessage(kj::ArrayPtr<kj::AutoCloseFd> fdSpace,
                                      capnp::ReaderOptions options,
                                      kj::ArrayPtr<capnp::word> scratchSpace) override;
  kj::Promise<void> writeMessage(kj::ArrayPtr<const int> fds, Segments segments) override;
  kj::Promise<void> writeMessages(kj::ArrayPtr<Segments> messages) override;
  kj::Maybe<int> getSendBufferSize() override { return stream_.getSendBufferSize(); }
  kj::Promise<void> end() override { return stream_.end(); }

 private:
  kj::Promise<void> roomForAnswers();
  kj::Promise<void> timed(size_t bytes, kj::Promise<void> write);

  capnp::AsyncIoMessageStream stream_;
  kj::Timer& timer_;
  const Patience patience_;
  capnp::TwoPartyVatNetwork* network_ = nullptr;
  uint64_t messages_ = 0;         // received
  kj::TimePoint listeningSince_;  // the last message, or the end of what kept us from reading
  // It is not read: not being heard is not its silence. What bounds that is how long its answers
  // may take.
  bool heldBack_ = false;
  kj::TimePoint writingSince_;
  size_t writingBytes_ = 0;  // of the one write under way
  kj::Maybe<kj::Exception> failure_;
};

}  // namespace trainfs::mds
