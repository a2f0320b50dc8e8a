#include "fuse_client/address_resolver.h"

#include <netdb.h>

#include <cstring>

namespace trainfs::client {

namespace {

std::string lookUp(const std::string& host, uint16_t port, int flags, SocketAddress& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) return gai_strerror(code);
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.bytes = found->ai_addrlen;
  freeaddrinfo(found);
  return "";
}

}  // namespace

AddressResolver::~AddressResolver() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::optional<SocketAddress> AddressResolver::numeric(const std::string& host, uint16_t port) {
  SocketAddress address;
  if (!lookUp(host, port, AI_NUMERICHOST, address).empty()) return std::nullopt;
  return address;
}

void AddressResolver::resolve(std::string host, uint16_t port, Callback callback) {
  {
    std::lock_guard lock(mutex_);
    if (queries_.size() < kQueriesMax) {
      queries_.push_back({std::move(host), port, std::move(callback)});
      if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
      changed_.notify_one();
      return;
    }
  }
  callback("too many names wait to be looked up", {});
}

void AddressResolver::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !queries_.empty(); });
    if (stopping_) return;
    Query query = std::move(queries_.front());
    queries_.pop_front();
    lock.unlock();
    SocketAddress address;
    std::string wrong = lookUp(query.host, query.port, AI_ADDRCONFIG, address);
    query.callback(std::move(wrong), address);
    lock.lock();
  }
}

}  // namespace trainfs::client
