#include "mds/own_commands.h"

#include <algorithm>

namespace trainfs::mds {

kj::Promise<Outcome> OwnCommands::run(Operation op, SessionId session) {
  for (;;) {
    Command command{.session = session, .now = choices_.now(), .op = op};
    try {
      co_return co_await log_.append(std::move(command));
    } catch (kj::Exception& e) {
      if (e.getType() != kj::Exception::Type::OVERLOADED) throw;
    }
    co_await timer_.afterDelay(retryDelay_);
  }
}

kj::Promise<void> OwnCommands::runAll(std::vector<Operation> ops, SessionId session) {
  for (size_t begin = 0; begin < ops.size(); begin += kOwnCommandsAtOnce) {
    size_t count = std::min(kOwnCommandsAtOnce, ops.size() - begin);
    auto outcomes = kj::heapArrayBuilder<kj::Promise<Outcome>>(count);
    for (size_t i = 0; i < count; ++i) outcomes.add(run(std::move(ops[begin + i]), session));
    co_await kj::joinPromises(outcomes.finish());
  }
}

}  // namespace trainfs::mds
