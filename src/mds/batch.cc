#include "mds/batch.h"

#include "mds/state_machine.h"
#include "trainfs/logging.h"

namespace trainfs::mds {
namespace {

bool isFull(const kj::Exception& exception) {
  return exception.getType() == kj::Exception::Type::OVERLOADED;
}

// False: a command failed and is marked; what it did to the transaction is unknown.
bool applyAll(Txn& txn, const std::vector<const Command*>& commands,
              std::vector<Applied>& results) {
  for (size_t i = 0; i < commands.size(); ++i) {
    if (results[i].failure != nullptr) continue;
    try {
      results[i].outcome = apply(*commands[i], txn);
    } catch (const StoreBroken&) {
      throw;  // no property of the command: applied again, it might succeed
    } catch (kj::Exception& exception) {
      if (isFull(exception)) throw;
      spdlog::error("a command could not be applied: {}", exception.getDescription().cStr());
      results[i].failure = kj::mv(exception);
      return false;
    }
  }
  return true;
}

}  // namespace

// The others of the batch must not notice one that fails: they are applied again without it.
std::vector<Applied> applyBatch(Store& store, const std::vector<const Command*>& commands,
                                uint64_t firstIndex) {
  std::vector<Applied> results(commands.size());
  for (;;) {
    auto txn = store.begin();
    if (!applyAll(*txn, commands, results)) continue;
    setApplied(*txn, firstIndex + commands.size() - 1, commands.back()->now);
    txn->commit();
    return results;
  }
}

}  // namespace trainfs::mds
