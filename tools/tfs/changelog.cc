// tfs changelog, changelog_register, changelog_deregister, changelog_clear.
#include "changelog_client.h"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "changelog_format.h"
#include "command.h"
#include "file_systems.h"
#include "json_text.h"
#include "mounts.h"

namespace trainfs::tfs {
namespace {

// Between looks for new records.
constexpr std::chrono::milliseconds kFollowPause{500};

constexpr option kLongOptions[] = {{"follow", no_argument, nullptr, 'f'},
                                   {"users", no_argument, nullptr, 'u'},
                                   {"json", no_argument, nullptr, kLongJson},
                                   {"help", no_argument, nullptr, kLongHelp},
                                   {nullptr, 0, nullptr, 0}};
constexpr option kRegisterOptions[] = {{"user", required_argument, nullptr, 'u'},
                                       {"nameonly", no_argument, nullptr, 'n'},
                                       {"json", no_argument, nullptr, kLongJson},
                                       {"help", no_argument, nullptr, kLongHelp},
                                       {nullptr, 0, nullptr, 0}};
constexpr option kHelpOnly[] = {{"help", no_argument, nullptr, kLongHelp},
                                {nullptr, 0, nullptr, 0}};

// An MDT, and the mount through which its servers are known.
struct Mdt {
  Mount mount;
  uint16_t index = 0;
  std::string name;
};

// "trainfs-MDT0000", as Lustre names them; false: not of that form.
bool parseMdtName(const std::string& name, std::string& fsname, uint16_t& index) {
  auto dash = name.rfind("-MDT");
  if (dash == name.npos || name.size() != dash + 8) return false;
  const char* end = name.data() + name.size();
  fsname = name.substr(0, dash);
  return std::from_chars(end - 4, end, index, 16).ptr == end;
}

// By its name, or as the first of the file system that a path lies on. ENODEV: not mounted here.
int findMdt(const Command& command, const std::string& word, Mdt& mdt) {
  auto mounts = trainfsMounts();
  std::string fsname;
  mdt.name = word;
  if (parseMdtName(word, fsname, mdt.index)) {
    for (auto& mount : mounts)
      if (mount.fsname == fsname) return mdt.mount = mount, 0;
    return failure(command.name, "the file system of " + word + " is not mounted here", ENODEV);
  }
  const Mount* mount = mountOf(mounts, word);
  if (mount == nullptr)
    return failure(command.name,
                   "'" + word + "' is no MDT, like trainfs-MDT0000, and no path on trainfs",
                   ENODEV);
  mdt.mount = *mount;
  mdt.name = targetLabel(mount->fsname, "MDT", 0);
  return 0;
}

bool parseNumber(const std::string& text, uint64_t& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// "cl1", as registration says it.
bool parseUser(const std::string& text, uint32_t& user) {
  uint64_t number = 0;
  if (text.rfind("cl", 0) != 0 || !parseNumber(text.substr(2), number)) return false;
  user = static_cast<uint32_t>(number);
  return number != 0 && number == user;
}

// 0, or the exit code of a complaint.
int complain(const Command& command, const Mdt& mdt, const std::string& user,
             const ChangelogAnswer& answer) {
  if (!answer.error.empty())
    return failure(command.name, mdt.name + ": cannot ask the MDS: " + answer.error, ENOTCONN);
  switch (answer.code) {
    case 0:
      return 0;
    case ENOENT:
      return failure(command.name, mdt.name + " has no changelog user " + user, ENOENT);
    case EEXIST:
      return failure(command.name, "a changelog user '" + user + "' is registered already", EEXIST);
    case EINVAL:
      return failure(command.name, "there is no such record yet", EINVAL);
    default:
      return failure(command.name, mdt.name + ": " + std::strerror(answer.code), answer.code);
  }
}

// ---- changelog ----

struct Reading {
  bool follow = false, users = false, json = false;
  uint64_t first = 0, last = UINT64_MAX;
};

void print(const Change& change, bool json) {
  auto line = json ? jsonLine(changeJson(change)) : changeLine(change);
  std::printf("%s\n", line.c_str());
}

int readAll(const Mdt& mdt, Reading reading) {
  bool complained = false;
  for (;;) {
    auto answer = readChanges(mdt.mount, mdt.index, reading.first);
    if (!answer.error.empty()) {
      if (!reading.follow) return complain(kChangelog, mdt, "", answer);
      if (!complained)
        warning(kChangelog.name, mdt.name + ": waiting for the MDS: " + answer.error);
    }
    complained = !answer.error.empty();
    for (auto& change : answer.changes) {
      if (change.index > reading.last) return 0;
      print(change, reading.json);
      reading.first = change.index + 1;
    }
    // Whoever read our output is gone, which a pause would hide.
    if (std::fflush(stdout) != 0) return errno;
    if (reading.first > reading.last) return 0;
    if (!answer.changes.empty()) continue;
    if (!reading.follow) return 0;
    std::this_thread::sleep_for(kFollowPause);
  }
}

int printUsers(const Mdt& mdt, bool json) {
  auto answer = listUsers(mdt.mount, mdt.index);
  if (int code = complain(kChangelog, mdt, "", answer)) return code;
  if (json) {
    nlohmann::json users = nlohmann::json::array();
    for (auto& user : answer.users)
      users.push_back({{"id", "cl" + std::to_string(user.id)},
                       {"name", user.name},
                       {"index", user.cleared},
                       {"idle_seconds", user.idleSeconds}});
    std::printf("%s\n", jsonBlock({{"current_index", answer.last}, {"users", users}}).c_str());
    return 0;
  }
  std::printf("current index: %ju\n%-5s index (idle seconds)\n", uintmax_t{answer.last}, "ID");
  for (auto& user : answer.users) {
    auto id = "cl" + std::to_string(user.id) + (user.name.empty() ? "" : "-" + user.name);
    std::printf("%-5s %ju (%ju)\n", id.c_str(), uintmax_t{user.cleared},
                uintmax_t{user.idleSeconds});
  }
  return 0;
}

int runChangelog(int argc, char** argv) {
  Reading reading;
  OptionReader reader(argc, argv, ":hfu", kLongOptions);
  for (int option; (option = reader.next()) != -1;) {
    if (option == '?' || option == ':')
      return usageError(kChangelog.name, reader.complaint(option));
    if (option == 'h' || option == kLongHelp) return std::fputs(kChangelog.help, stdout), 0;
    (option == 'f' ? reading.follow : option == 'u' ? reading.users : reading.json) = true;
  }
  std::vector<std::string> words(argv + reader.firstPositional(), argv + argc);
  if (words.empty() || words.size() > 3)
    return usageError(kChangelog.name, "MDT [START [END]] is wanted");
  if ((words.size() > 1 && !parseNumber(words[1], reading.first)) ||
      (words.size() > 2 && !parseNumber(words[2], reading.last)))
    return usageError(kChangelog.name, "START and END are indexes of records");
  if (reading.last == 0) reading.last = UINT64_MAX;  // as lfs
  Mdt mdt;
  if (int code = findMdt(kChangelog, words[0], mdt)) return code;
  return reading.users ? printUsers(mdt, reading.json) : readAll(mdt, reading);
}

// ---- users ----

std::string registeredJson(const Mdt& mdt, uint32_t user, const std::string& name) {
  return jsonLine({{"mdt", mdt.name}, {"id", "cl" + std::to_string(user)}, {"name", name}});
}

int runRegister(int argc, char** argv) {
  std::string name;
  bool nameOnly = false, json = false;
  OptionReader reader(argc, argv, ":hnu:", kRegisterOptions);
  for (int option; (option = reader.next()) != -1;) {
    if (option == '?' || option == ':')
      return usageError(kChangelogRegister.name, reader.complaint(option));
    if (option == 'h' || option == kLongHelp) return std::fputs(kChangelogRegister.help, stdout), 0;
    if (option == 'u') name = reader.argument();
    if (option == 'n') nameOnly = true;
    if (option == kLongJson) json = true;
  }
  if (argc - reader.firstPositional() != 1)
    return usageError(kChangelogRegister.name, "one MDT is wanted");
  Mdt mdt;
  if (int code = findMdt(kChangelogRegister, argv[reader.firstPositional()], mdt)) return code;
  auto answer = registerUser(mdt.mount, mdt.index, name);
  if (int code = complain(kChangelogRegister, mdt, name, answer)) return code;
  if (json)
    std::puts(registeredJson(mdt, answer.user, name).c_str());
  else if (nameOnly)
    std::printf("cl%u\n", answer.user);
  else
    std::printf("%s: Registered changelog userid 'cl%u'\n", mdt.name.c_str(), answer.user);
  return 0;
}

// A command without options: MDT, USER, and what else `wanted` names.
int forUser(const Command& command, int argc, char** argv, const std::string& wanted, size_t count,
            const std::function<int(const Mdt&, uint32_t, const std::vector<std::string>&)>& run) {
  OptionReader reader(argc, argv, ":h", kHelpOnly);
  for (int option; (option = reader.next()) != -1;) {
    if (option == '?' || option == ':') return usageError(command.name, reader.complaint(option));
    return std::fputs(command.help, stdout), 0;
  }
  std::vector<std::string> words(argv + reader.firstPositional(), argv + argc);
  uint32_t user = 0;
  if (words.size() != count || !parseUser(words[1], user))
    return usageError(command.name, wanted + " is wanted, USER like cl1");
  Mdt mdt;
  if (int code = findMdt(command, words[0], mdt)) return code;
  return run(mdt, user, words);
}

int runDeregister(int argc, char** argv) {
  auto deregister = [](const Mdt& mdt, uint32_t user, const std::vector<std::string>& words) {
    auto answer = deregisterUser(mdt.mount, mdt.index, user);
    if (int code = complain(kChangelogDeregister, mdt, words[1], answer)) return code;
    std::printf("%s: Deregistered changelog user '%s'\n", mdt.name.c_str(), words[1].c_str());
    return 0;
  };
  return forUser(kChangelogDeregister, argc, argv, "MDT USER", 2, deregister);
}

int runClear(int argc, char** argv) {
  auto clear = [](const Mdt& mdt, uint32_t user, const std::vector<std::string>& words) {
    uint64_t upTo = 0;
    if (!parseNumber(words[2], upTo))
      return usageError(kChangelogClear.name, "END is the index of a record, or 0");
    auto answer = clearChanges(mdt.mount, mdt.index, user, upTo);
    return complain(kChangelogClear, mdt, words[1], answer);
  };
  return forUser(kChangelogClear, argc, argv, "MDT USER END", 3, clear);
}

}  // namespace

const Command kChangelog = {"changelog", "show what has changed, for programs that follow",
                            R"(Usage: tfs changelog [-f] [--json] MDT [START [END]]
       tfs changelog --users [--json] MDT
Prints what has changed on MDT, a line for each change, from record START (the oldest that is there) to END (the
newest). Changes are recorded while somebody is registered: see changelog_register. The file system must be mounted
here; the MDS is asked directly. MDT is a name like trainfs-MDT0000, or a path: the first MDT of what it lies on. Who
reads must clear what it has seen, or the MDS deregisters it in the end.

  -f, --follow           then wait for more, until Ctrl-C
  -u, --users            instead: who is registered, and up to which record each has cleared
      --json             as JSON, one object (line) for each record

A line: index, type, time and day (UTC), flags (0x1: the last link went), t=[what changed], ef= and u=UID:GID who
asked, x=the extended attribute, p=[directory] name, and of a rename s=[what moved] sp=[from directory] old name; its
t= is what was replaced. Types: CREAT MKDIR HLINK SLINK MKNOD UNLNK RMDIR RENME CLOSE (it had been written) LYOUT TRUNC
SATTR XATTR MTIME.

Examples:
  tfs changelog trainfs-MDT0000
  tfs changelog --follow --json trainfs-MDT0000 1200 | my-indexer
)",
                            runChangelog};

const Command kChangelogRegister = {"changelog_register", "ask for changes to be recorded",
                                    R"(Usage: tfs changelog_register [-n | --json] [-u NAME] MDT
Registers a user of the changelog of MDT and prints its id, like cl1. From then on every change is recorded, and kept
until each user has cleared it.

  -u, --user NAME        a name to tell it by in the list of users; no two may have the same
  -n, --nameonly         print the id only
      --json             as JSON: mdt, id, name

Example:
  id=$(tfs changelog_register -n -u my-indexer trainfs-MDT0000)
)",
                                    runRegister};

const Command kChangelogDeregister = {"changelog_deregister", "no longer ask for changes",
                                      R"(Usage: tfs changelog_deregister MDT USER
Ends what changelog_register began: records that only USER had not cleared are erased, and after the last user nothing
is recorded any more.

      --help             this text

Example:
  tfs changelog_deregister trainfs-MDT0000 cl1
)",
                                      runDeregister};

const Command kChangelogClear = {"changelog_clear", "tell that changes have been seen",
                                 R"(Usage: tfs changelog_clear MDT USER END
USER needs no record up to END any more, this one included; 0: up to the newest. A record is erased when every user has
cleared it.

      --help             this text

Example:
  tfs changelog_clear trainfs-MDT0000 cl1 1199
)",
                                 runClear};

}  // namespace trainfs::tfs
