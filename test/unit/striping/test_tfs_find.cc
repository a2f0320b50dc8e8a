// The tests of tfs find on made-up files, and its walk through a real tree.
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "find_format.h"
#include "find_query.h"
#include "json_text.h"
#include "tree_walk.h"

using namespace trainfs;
using namespace trainfs::tfs;

namespace {

constexpr time_t kNow = 1'000'000'000;

FindQuery parse(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in("find " + line);
  for (std::string word; in >> word;) words.push_back(word);
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  auto ostIndex = [](const std::string& name) -> std::optional<uint32_t> {
    if (name == "trainfs-OST0003") return 3;
    return std::nullopt;
  };
  return parseFind(static_cast<int>(pointers.size()), pointers.data(), {kNow, ostIndex});
}

struct File {
  std::string name = "file";
  unsigned char type = DT_REG;
  struct stat attributes{};
  Layout layout;
  bool unreadable = false;
};

bool holds(const std::string& tests, const File& file) {
  INFO(tests);
  auto query = parse(tests);
  REQUIRE(query.error == "");
  return matches(query, {.name = file.name,
                         .type = file.type,
                         .attributes = [&] { return file.unreadable ? nullptr : &file.attributes; },
                         .layout = [&] { return file.unreadable ? nullptr : &file.layout; },
                         .empty = [] { return std::optional(true); }});
}

File ofSize(off_t bytes) {
  File file;
  file.attributes.st_size = bytes;
  return file;
}

File ofAge(time_t seconds) {
  File file;
  file.attributes.st_mtim.tv_sec = kNow - seconds;
  return file;
}

File striped(std::vector<ChainId> chains) {
  File file;
  Component component;
  component.stripeCount = static_cast<uint32_t>(chains.size());
  component.chains = std::move(chains);
  component.pool = "flash";
  file.layout.components = {component};
  return file;
}

}  // namespace

TEST_CASE("find: sizes in bytes and units, more, less and up to") {
  CHECK(holds("-size 1M", ofSize(1 << 20)));
  CHECK(holds("-size 1M", ofSize(1)));
  CHECK(!holds("-size 1M", ofSize(0)));
  CHECK(!holds("-size 1M", ofSize((1 << 20) + 1)));
  CHECK(holds("-size +1M", ofSize((1 << 20) + 1)));
  CHECK(!holds("-size +1M", ofSize(1 << 20)));
  CHECK(holds("--size=-1M", ofSize(5)));
  CHECK(holds("-size 1000", ofSize(1000)));
  CHECK(!holds("-size 1000", ofSize(999)));
  CHECK(holds("-size 1000c", ofSize(1000)));
  CHECK(holds("-s 2b", ofSize(1024)));
  CHECK(holds("! -size +1M", ofSize(3)));
}

TEST_CASE("find: ages in days and units") {
  CHECK(holds("-mtime +1", ofAge(86401)));
  CHECK(!holds("-mtime +1", ofAge(86400)));
  CHECK(holds("-mtime -1", ofAge(86399)));
  CHECK(holds("-mtime 1", ofAge(86400)));
  CHECK(holds("-mtime 0", ofAge(5)));
  CHECK(holds("-M +10m", ofAge(601)));
  CHECK(holds("-mtime -2w", ofAge(86400)));
  CHECK(!holds("-mtime +2y", ofAge(86400)));
}

TEST_CASE("find: names, types, modes and links") {
  File file;
  file.name = "data.bin";
  file.attributes.st_mode = S_IFREG | 0640;
  file.attributes.st_nlink = 2;
  CHECK(holds("-name *.bin", file));
  CHECK(!holds("-name *.BIN", file));
  CHECK(holds("-iname *.BIN", file));
  CHECK(holds("-type f ! -type d", file));
  CHECK(holds("-perm 640", file));
  CHECK(holds("-perm -600", file));
  CHECK(holds("-perm /022 -links 2", file) == false);
  CHECK(holds("-links +1", file));
  CHECK(!holds("-links -2", file));
}

TEST_CASE("find: layouts") {
  auto file = striped({{1}, {3}});
  CHECK(holds("-ost 3", file));
  CHECK(holds("-ost 0,1", file));
  CHECK(holds("-ost trainfs-OST0003", file));
  CHECK(!holds("-ost 0,2", file));
  CHECK(holds("-stripe-count 2 -stripe-size 1M -pool flash", file));
  CHECK(holds("-c +1 -S -2M", file));
  CHECK(!holds("-stripe-count 1", file));
  CHECK(!holds("-stripe-count 2", File{}));
  CHECK(holds("! -stripe-count 2", File{}));
}

TEST_CASE("find: what cannot be told matches neither a test nor its negation") {
  File file;
  file.unreadable = true;
  CHECK(!holds("-size +1", file));
  CHECK(!holds("! -size +1", file));
  CHECK(!holds("! -ost 1", file));
}

TEST_CASE("find: wrong command lines are told") {
  for (const char* line : {"-size big",
                           "-size 1X",
                           "-size",
                           "-mtime soon",
                           "-type x",
                           "-type fd",
                           "-nonsense",
                           "!",
                           "! -maxdepth 1",
                           "-maxdepth x",
                           "-ost nowhere",
                           "-ost 70000",
                           "-ost 1,",
                           "-perm 9",
                           "-newer /absent/file",
                           "-user nobody-of-that-name",
                           "-mindepth 3 -maxdepth 2",
                           "-type f path",
                           "-print0 --json",
                           "(",
                           "-stripe-count many",
                           "-size 99999999999999999999"}) {
    INFO(line);
    CHECK(parse(line).error != "");
  }
  CHECK(parse("").paths == std::vector<std::string>{"."});
  CHECK(parse("a b -maxdepth 3 -print0").paths == std::vector<std::string>{"a", "b"});
  CHECK(parse("-type f --json").json);
}

TEST_CASE("find: JSON is a line for each file, whatever the bytes of its name") {
  struct stat attributes{};
  attributes.st_ino = 0x2a;
  attributes.st_mode = S_IFREG | S_ISVTX | 0640;
  attributes.st_nlink = 2;
  attributes.st_size = 5000;
  attributes.st_blocks = 16;
  attributes.st_mtim = {.tv_sec = kNow, .tv_nsec = 5};
  auto line = jsonLine(foundJson("a\nb\xe9", attributes));
  CHECK(line.find('\n') == std::string::npos);
  auto found = nlohmann::json::parse(line);
  CHECK(found["path"] == "a\nb\xef\xbf\xbd");
  CHECK(found["fid"] == "[0x0:0x2a:0x0]");
  CHECK(found["type"] == "f");
  CHECK(found["mode"] == "1640");
  CHECK(found["links"] == 2);
  CHECK(found["size"] == 5000);
  CHECK(found["allocated_bytes"] == 8192);
  CHECK(found["mtime"] == "2001-09-09T01:46:40.000000005Z");
}

TEST_CASE("a walk sees each file once, deeper than it keeps directories open") {
  auto start = std::filesystem::temp_directory_path() / "trainfs-walk-XXXXXX";
  std::string root = start.string();
  REQUIRE(mkdtemp(root.data()) != nullptr);
  std::set<std::string> made = {root};
  std::string directory = root;
  for (int depth = 0; depth < 200; depth++) {
    for (const char* name : {"/a", "/z"}) {
      std::ofstream(directory + name) << depth;
      made.insert(directory + name);
    }
    directory += "/d";
    std::filesystem::create_directory(directory);
    made.insert(directory);
  }
  std::filesystem::create_symlink(root, root + "/loop");
  made.insert(root + "/loop");
  std::set<std::string> seen;
  std::vector<std::string> complaints;
  TreeWalk walk(
      [&](const Visit& visit) {
        CHECK(seen.insert(visit.path).second);
        return true;
      },
      [&](const std::string& path, int) { complaints.push_back(path); });
  walk.run(root);
  CHECK(seen == made);
  CHECK(complaints.empty());
  walk.run(root + "/absent");
  CHECK(complaints == std::vector<std::string>{root + "/absent"});
  std::filesystem::remove_all(root);
}
