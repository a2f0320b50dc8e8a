#include "mds/glimpse.h"

#include <algorithm>
#include <map>

#include "striping/layout.h"
#include "trainfs/object_id.h"

namespace trainfs::mds {

void mergeTruth(Node& node, const FileTruth& truth) {
  auto& attributes = node.attributes;
  attributes.sizeBytes = std::max(attributes.sizeBytes, truth.sizeBytes);
  if (truth.usedBytes != 0) attributes.usedBytes = truth.usedBytes;
  // A time set by utimes() after the last write stands: setting it moved ctime.
  if (truth.mtime > attributes.ctime) attributes.mtime = attributes.ctime = truth.mtime;
  for (auto [component, stripe] : truth.exists) {
    if (component >= node.layout.components.size()) continue;
    auto& exists = node.layout.components[component].exists;
    if (stripe < exists.size()) exists[stripe] = true;
  }
}

kj::Promise<FileTruth> Glimpse::ask(InodeId inode, Layout layout, kj::TimePoint deadline) {
  std::map<uint32_t, std::vector<ObjectId>> byOst;
  for (auto& placed : striping::objectsOf(inode, layout, false))
    byOst[placed.chain.value].push_back(placed.object);

  auto answers = kj::heapArrayBuilder<kj::Promise<std::vector<Found>>>(byOst.size());
  for (auto& [index, objects] : byOst) answers.add(askOst(index, std::move(objects), deadline));

  FileTruth truth;
  std::vector<striping::ObjectSize> sizes;
  for (auto& answer : co_await kj::joinPromisesFailFast(answers.finish())) {
    for (auto& found : answer) {
      if (!found.exists && found.error == 0) continue;
      auto [component, stripe] = std::pair(found.object.component, found.object.stripe);
      // One that cannot be looked at has been there: to read it must be an error, never zeros.
      truth.exists.emplace_back(component, stripe);
      if (found.error != 0) {
        truth.error = found.error;
        continue;
      }
      sizes.push_back({component, stripe, found.sizeBytes});
      truth.usedBytes += found.usedBytes;
      if (found.mtime > truth.mtime) truth.mtime = found.mtime;
    }
  }
  truth.sizeBytes = striping::fileSize(layout, sizes);
  co_return truth;
}

kj::Promise<std::vector<Glimpse::Found>> Glimpse::askOst(uint32_t index,
                                                         std::vector<ObjectId> objects,
                                                         kj::TimePoint deadline) {
  for (;;) {
    KJ_IF_MAYBE (control, osts_.control(index)) {
      try {
        co_return co_await timer_.timeoutAfter(options_.ostTerm, stat(*control, objects));
      } catch (const kj::Exception&) {
        // Away or hanging: both may pass.
      }
    }
    if (timer_.now() >= deadline)
      kj::throwFatalException(
          KJ_EXCEPTION(OVERLOADED, "an OST that holds part of a file is away", index));
    co_await osts_.changed().exclusiveJoin(timer_.afterDelay(options_.retryDelay));
  }
}

kj::Promise<std::vector<Glimpse::Found>> Glimpse::stat(rpc::OssControl::Client control,
                                                       const std::vector<ObjectId>& objects) {
  std::vector<Found> found;
  for (size_t begin = 0; begin < objects.size(); begin += kStatObjectsMax) {
    size_t count = std::min(kStatObjectsMax, objects.size() - begin);
    auto request = control.statRequest();
    auto list = request.initObjects(count);
    for (size_t i = 0; i < count; ++i) {
      auto id = encodeObjectId(objects[begin + i]);
      list.set(i, kj::arrayPtr(id.data(), id.size()));
    }
    auto response = co_await request.send();
    KJ_REQUIRE(response.getResults().size() == count, "an OST answered for other objects");
    for (size_t i = 0; i < count; ++i) {
      auto stat = response.getResults()[i];
      found.push_back({objects[begin + i],
                       stat.getError(),
                       stat.getExists(),
                       stat.getSizeBytes(),
                       stat.getUsedBytes(),
                       {stat.getMtimeSeconds(), stat.getMtimeNanoseconds()}});
    }
  }
  co_return found;
}

}  // namespace trainfs::mds
