#include "mds/core.h"

#include <cstdlib>
#include <utility>

#include "trainfs/logging.h"

namespace trainfs::mds {

Core::Core(Store& store, Log& log, kj::Timer& timer, ServerOptions given)
    : store_(store),
      timer_(timer),
      tasks_(kj::heap<kj::TaskSet>(static_cast<kj::TaskSet::ErrorHandler&>(*this))),
      options(std::move(given)),
      fsname(mds::fsname(*store_.snapshot())),
      mdtIndex(mds::mdtIndex(*store_.snapshot())),
      osts(*store_.snapshot(), timer_, options),
      locks(sessions),
      choices(*store_.snapshot(), osts),
      commands(log, choices, timer_, options),
      glimpse(osts, timer_, options),
      truncations(store_, log, choices, osts, timer_, options, *tasks_),
      recovery(store_, commands, glimpse, truncations, timer_, options),
      reaper(store_, commands, osts, timer_, options),
      ended(store_, commands, reaper, timer_, options),
      changelog(store_, commands, choices, timer_, options),
      service({store_, commands, osts, sessions, names, locks, recovery, reaper, ended, timer_,
               options, *tasks_}),
      operations({store_, log, choices, osts, commands, sessions, names, glimpse, truncations,
                  recovery, reaper}) {
  osts.onChange([this] { service.pushMap(); });
  truncations.onSizeToBeAsked([this] { recovery.kick(); });
  tasks_->add(service.run());
  tasks_->add(recovery.run());
  tasks_->add(reaper.run());
  tasks_->add(ended.run());
  tasks_->add(changelog.run());
}

void Core::requireServing() const {
  if (stopped_) kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED, "this server is stopping"));
}

void Core::stop() {
  if (std::exchange(stopped_, true)) return;
  service.stop();
  calls_.cancel(KJ_EXCEPTION(DISCONNECTED, "this server is stopping"));
  tasks_ = nullptr;
}

// The loops and the endings of sessions catch what they expect. What comes here is a damaged record
// or a bug, and a server without its reaper or its watch over terms would be wrong slowly.
void Core::taskFailed(kj::Exception&& exception) {
  spdlog::critical("a background task failed, stopping: {}", kj::str(exception).cStr());
  std::abort();
}

}  // namespace trainfs::mds
