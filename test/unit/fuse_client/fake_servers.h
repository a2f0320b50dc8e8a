// An MDS client and a data client for tests of what lies above them: they note what they are asked,
// and answer when the test says so.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "fuse_client/data_client.h"
#include "fuse_client/mds_client.h"

namespace trainfs::client::test {

// Every call waits in `asked` under a name like "report 7" until answered.
class Script {
 public:
  void add(std::string what, std::function<void()> answer) {
    asked_.push_back({std::move(what), std::move(answer)});
  }
  std::vector<std::string> asked() const {
    std::vector<std::string> names;
    for (auto& entry : asked_) names.push_back(entry.what);
    return names;
  }
  // Answers the oldest call of that name; false: there is none.
  bool answer(const std::string& what) {
    for (auto entry = asked_.begin(); entry != asked_.end(); ++entry) {
      if (entry->what != what) continue;
      auto run = std::move(entry->answer);
      asked_.erase(entry);
      run();
      return true;
    }
    return false;
  }
  void answerAll() {
    while (!asked_.empty()) answer(asked_.front().what);
  }

 private:
  struct Entry {
    std::string what;
    std::function<void()> answer;
  };
  std::deque<Entry> asked_;
};

class FakeMds final : public MdsClient {
 public:
  explicit FakeMds(Script& script) : script_(script) {}
  Node node;  // what every question about the inode is answered with
  std::vector<Operation> executed;
  int executeError = 0, lockError = 0;
  std::vector<FileLock> unlocked;
  uint64_t named = 0;  // the owner of the last lock that was asked for

  void stop() override {}
  std::optional<std::string> waitForSession(std::chrono::milliseconds) override {
    return std::nullopt;
  }
  bool end(std::chrono::milliseconds) override { return true; }
  void checkSession() override {}

  void execute(Identity, Operation op, Answer<Outcome> answer, Urgency) override {
    static const char* const kNames[] = {"create",  "link",     "unlink",      "rmdir", "rename",
                                         "setattr", "setxattr", "removexattr", "report"};
    std::string name = kNames[op.index()];
    executed.push_back(std::move(op));
    script_.add(name, [this, answer] {
      if (executeError != 0) return answer(Errno(executeError));
      answer(Outcome{node});
    });
  }
  void settled(InodeId, Answer<Done> answer) override {
    script_.add("settled", [this, answer] {
      if (executeError != 0) return answer(Errno(executeError));
      answer(Done{});
    });
  }
  void lookup(InodeId, std::string, Answer<Node> answer) override { ask("lookup", answer); }
  void getattr(InodeId, Answer<Node> answer) override { ask("getattr", answer); }
  void open(InodeId, bool writing, Answer<Node> answer) override {
    ask(writing ? "open to write" : "open", answer);
  }
  void instantiate(InodeId, uint8_t, Answer<Node> answer) override { ask("instantiate", answer); }
  void release(InodeId, Answer<Done> answer) override {
    script_.add("release", [answer] { answer(Done{}); });
  }
  void readdir(InodeId, uint64_t, uint32_t, Answer<DirPage>) override {}
  void readlink(InodeId, Answer<std::string>) override {}
  void getxattr(InodeId, std::string, Answer<std::string>) override {}
  void listxattr(InodeId, Answer<std::vector<std::string>>) override {}
  void names(InodeId, InodeId, NameCursor, Answer<NamesPage>) override {}
  void statfs(Answer<FsStats>) override {}
  std::shared_ptr<LockWait> lock(const FileLock& lock, bool, Answer<Done> answer) override {
    named = lock.owner;
    script_.add("lock", [this, answer] {
      if (lockError != 0) return answer(Errno(lockError));
      answer(Done{});
    });
    return nullptr;
  }
  void giveUp(std::shared_ptr<LockWait>) override {
    script_.add("give up", [] {});
  }
  void unlock(const FileLock& lock, Answer<Done> answer) override {
    unlocked.push_back(lock);
    script_.add("unlock", [answer] { answer(Done{}); });
  }
  void testLock(const FileLock&, Answer<std::optional<FileLock>> answer) override {
    script_.add("test lock", [answer] { answer(std::optional<FileLock>()); });
  }

 private:
  void ask(const char* what, Answer<Node> answer) {
    script_.add(what, [this, answer] { answer(node); });
  }
  Script& script_;
};

class FakeData final : public DataClient {
 public:
  explicit FakeData(Script& script) : script_(script) {}
  int error = 0;
  std::map<ObjectId, std::vector<std::byte>> objects;
  size_t syncedObjects = 0, readPieces = 0;
  uint64_t verifier = 1;  // of every object
  int withdrawals = 0;

  void setMap(ClusterMap) override {}
  void setSession(SessionId, uint32_t) override {}
  void setRemoved(std::vector<InodeId>) override {}
  void onStaleSession(std::function<void()>) override {}

  void read(std::vector<ReadPiece> pieces, Completion done, Unwanted unwanted) override {
    readPieces += pieces.size();
    add("read", std::move(done), [this, pieces, unwanted] {
      for (auto& piece : pieces) {
        auto& object = objects[piece.extent.object];
        for (size_t i = 0; i < piece.data.size(); ++i) {
          size_t at = piece.extent.objectOffsetBytes + i;
          piece.data[i] = at < object.size() ? object[at] : std::byte{0};
        }
      }
    });
  }
  void withdraw() override { ++withdrawals; }
  void write(std::vector<WritePiece> pieces, ChangeCompletion done, Unwanted unwanted,
             Misplaced) override {
    addChange("write", pieces.size(), std::move(done), [this, pieces, unwanted] {
      for (auto& piece : pieces) {
        auto& object = objects[piece.extent.object];
        object.resize(
            std::max<size_t>(object.size(), piece.extent.objectOffsetBytes + piece.data.size()));
        std::copy(piece.data.begin(), piece.data.end(),
                  object.begin() + static_cast<ptrdiff_t>(piece.extent.objectOffsetBytes));
      }
    });
  }
  void punch(std::vector<ObjectExtent> extents, ChangeCompletion done) override {
    addChange("punch", extents.size(), std::move(done), [] {});
  }
  void sync(std::vector<ObjectRef> refs, ChangeCompletion done) override {
    syncedObjects = refs.size();
    addChange("sync", refs.size(), std::move(done), [] {});
  }
  void stat(std::vector<ObjectRef> refs, StatCompletion done) override {
    script_.add("stat", [count = refs.size(), done] {
      done(std::vector<ObjectFigures>(count, {.exists = true, .sizeBytes = 1, .usedBytes = 4096}));
    });
  }

 private:
  void add(const char* what, Completion done, std::function<void()> work) {
    script_.add(what, [this, done, work] {
      if (error != 0) return done(Errno(error));
      work();
      done(Done{});
    });
  }
  void addChange(const char* what, size_t pieces, ChangeCompletion done,
                 std::function<void()> work) {
    script_.add(what, [this, pieces, done, work] {
      if (error != 0) return done(Errno(error));
      work();
      done(Verifiers(pieces, verifier));
    });
  }
  Script& script_;
};

}  // namespace trainfs::client::test
