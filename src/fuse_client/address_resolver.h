// Host names to socket addresses, on a thread of its own: a name server that does not answer must
// not hold up a data worker, which has other OSTs to serve.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace trainfs::client {

// Names that wait to be looked up; beyond that a look-up fails at once, and the connection tries
// again later.
inline constexpr size_t kQueriesMax = 1024;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
};

class AddressResolver {
 public:
  // What is wrong, or empty and the address.
  using Callback = std::function<void(std::string wrong, SocketAddress address)>;

  AddressResolver() = default;
  // Waits for the look-up under way; callbacks of those that wait never run.
  ~AddressResolver();

  // A numeric address needs nobody to be asked.
  static std::optional<SocketAddress> numeric(const std::string& host, uint16_t port);

  // Any thread; the callback runs on the resolver's, or at once when too many wait. The thread
  // starts with the first name.
  void resolve(std::string host, uint16_t port, Callback callback);

 private:
  struct Query {
    std::string host;
    uint16_t port;
    Callback callback;
  };
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Query> queries_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace trainfs::client
