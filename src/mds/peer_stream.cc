#include "mds/peer_stream.h"

#include <kj/debug.h>

namespace trainfs::mds {

namespace {

constexpr kj::Duration kLookAgain = 10 * kj::MILLISECONDS;

size_t bytesOf(PeerStream::Segments segments) {
  size_t bytes = 0;
  for (auto& segment : segments) bytes += segment.asBytes().size();
  return bytes;
}

}  // namespace

PeerStream::PeerStream(kj::AsyncIoStream& stream, kj::Timer& timer, Patience patience)
    : stream_(stream),
      timer_(timer),
      patience_(patience),
      listeningSince_(timer.now()),
      writingSince_(timer.now()) {}

kj::Promise<void> PeerStream::watch(capnp::TwoPartyVatNetwork& network) {
  network_ = &network;
  co_await timer_.afterDelay(patience_.first);
  KJ_REQUIRE(messages_ > 0, "no message came", patience_.first);
  for (;;) {
    co_await timer_.afterDelay(patience_.next / 4);
    auto now = timer_.now();
    KJ_REQUIRE(writingBytes_ == 0 || now - writingSince_ < patience_.next,
               "it does not take its answers", network.getCurrentQueueSize() + writingBytes_);
    KJ_REQUIRE(heldBack_ || now - listeningSince_ < patience_.next, "it has been silent",
               now - listeningSince_);
  }
}

kj::Promise<PeerStream::Message> PeerStream::tryReadMessage(
    kj::ArrayPtr<kj::AutoCloseFd> fdSpace, capnp::ReaderOptions options,
    kj::ArrayPtr<capnp::word> scratchSpace) {
  co_await roomForAnswers();
  size_t bytesMax = messages_ == 0 ? kFirstMessageBytesMax : kMessageBytesMax;
  options.traversalLimitInWords = bytesMax / sizeof(capnp::word);
  try {
    auto message = co_await stream_.tryReadMessage(fdSpace, options, scratchSpace);
    ++messages_;
    listeningSince_ = timer_.now();
    co_return kj::mv(message);
  } catch (const kj::Exception& exception) {
    failure_ = kj::cp(exception);
    throw;
  }
}

// The network counts what waits for its turn, and tells nobody when it has become less.
kj::Promise<void> PeerStream::roomForAnswers() {
  auto isFull = [this] {
    return network_ != nullptr && network_->getCurrentQueueSize() + writingBytes_ > kQueuedBytesMax;
  };
  if (!isFull()) co_return;
  heldBack_ = true;
  while (isFull()) co_await timer_.afterDelay(kLookAgain);
  heldBack_ = false;
  listeningSince_ = timer_.now();
}

kj::Promise<void> PeerStream::writeMessage(kj::ArrayPtr<const int> fds, Segments segments) {
  return timed(bytesOf(segments), stream_.writeMessage(fds, segments));
}

kj::Promise<void> PeerStream::writeMessages(kj::ArrayPtr<Segments> messages) {
  size_t bytes = 0;
  for (auto& message : messages) bytes += bytesOf(message);
  return timed(bytes, stream_.writeMessages(messages));
}

kj::Promise<void> PeerStream::timed(size_t bytes, kj::Promise<void> write) {
  writingBytes_ = bytes;
  writingSince_ = timer_.now();
  co_await write;
  writingBytes_ = 0;
}

}  // namespace trainfs::mds
