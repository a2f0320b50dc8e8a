#include "mds/own_commands.h"

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

}  // namespace trainfs::mds
