#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <memory>
#include <vector>

#include <unistd.h>

#include "lib/temp_dir.h"
#include "trainfs/config.h"
#include "trainfs/logging.h"

namespace trainfs {

namespace {

// A program with one option of each kind, and its defaults.
struct Program {
  std::string listen = "localhost";
  bool sync = false;
  uint32_t workers = 2;
  std::optional<uint32_t> index;
  bool dryRun = false;
  std::vector<std::string> nodes = {"default"};
  std::vector<std::string> targets;

  std::optional<ProgramOptions::Exit> run(std::vector<std::string> arguments) {
    ProgramOptions options("trainfs-test", "Tests.");
    options.addForDaemon();
    options.add("listen", listen, "address", checkListenAddress);
    options.add("data.sync", sync, "wait");
    options.add("data.workers", workers, "threads", 1, 64);
    options.add("index", index, "number", 0, 100);
    options.add("dry-run,-n", dryRun, "only look");
    options.add("node", nodes, "servers");
    options.addPositional("target", targets, "directories", 1);
    arguments.insert(arguments.begin(), "trainfs-test");
    std::vector<const char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.c_str());
    return options.parse(static_cast<int>(argv.size()), argv.data());
  }

  // What is printed when the program is refused.
  std::string refusal(std::vector<std::string> arguments) {
    auto exit = run(std::move(arguments));
    if (!exit) return "started";
    CHECK(exit->status == kExitUsage);
    CHECK(exit->text.starts_with("trainfs-test: "));
    CHECK(exit->text.ends_with("\n"));
    return exit->text;
  }

  std::string refusalOf(const std::string& configText) {
    test::TempDir dir;
    return refusal({"--config", dir.write("c.toml", configText), "t"});
  }
};

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("without flags and file the defaults stand", "[config]") {
  Program program;
  REQUIRE_FALSE(program.run({"t1", "t2"}));
  CHECK(program.listen == "localhost");
  CHECK(program.workers == 2);
  CHECK(program.nodes == std::vector<std::string>{"default"});
  CHECK(program.targets == std::vector<std::string>{"t1", "t2"});
}

TEST_CASE("the file beats the default and a flag beats the file", "[config]") {
  test::TempDir dir;
  auto file = dir.write("c.toml",
                        "listen = 'file'\nnode = ['a', 'b']\nlog-level = 'debug'\n"
                        "[data]\nworkers = 8\nsync = true\n");
  Program program;
  REQUIRE_FALSE(program.run({"--config", file, "t"}));
  CHECK(program.listen == "file");
  CHECK(program.workers == 8);
  CHECK(program.sync);
  CHECK(program.nodes == std::vector<std::string>{"a", "b"});

  Program flagged;
  REQUIRE_FALSE(flagged.run({"--listen", "flag", "--config=" + file, "--data.workers=3", "--node",
                             "n1", "t", "--node=n2", "--data.sync=false"}));
  CHECK(flagged.listen == "flag");
  CHECK(flagged.workers == 3);
  CHECK_FALSE(flagged.sync);
  CHECK(flagged.nodes == std::vector<std::string>{"n1", "n2"});
  CHECK(flagged.targets == std::vector<std::string>{"t"});
}

TEST_CASE("of a flag given twice the last one counts", "[config]") {
  Program program;
  REQUIRE_FALSE(program.run({"--listen=a", "--listen=b", "t"}));
  CHECK(program.listen == "b");
}

TEST_CASE("an option without a default stays empty until it is given", "[config]") {
  Program none, flagged;
  REQUIRE_FALSE(none.run({"t"}));
  CHECK_FALSE(none.index);
  CHECK_FALSE(none.dryRun);
  REQUIRE_FALSE(flagged.run({"--index=0", "-n", "t"}));
  CHECK(flagged.index == 0);
  CHECK(flagged.dryRun);
  test::TempDir dir;
  Program filed;
  REQUIRE_FALSE(filed.run({"--config", dir.write("c.toml", "index = 7\ndry-run = true"), "t"}));
  CHECK(filed.index == 7);
  CHECK(filed.dryRun);
  contains(Program().refusal({"--index=101", "t"}), "index");
}

TEST_CASE("a wrong flag is refused by name", "[config]") {
  contains(Program().refusal({"--lisen=x", "t"}), "--lisen");
  contains(Program().refusal({"--data.workers=0", "t"}), "data.workers");
  contains(Program().refusal({"--data.workers=65", "t"}), "data.workers");
  contains(Program().refusal({"--data.workers=-1", "t"}), "data.workers");
  contains(Program().refusal({"--data.workers=many", "t"}), "data.workers");
  contains(Program().refusal({"t", "--listen"}), "listen");
  contains(Program().refusal({}), "target");
  contains(Program().refusal({"--log-level=loud", "t"}), "'loud'");
  contains(Program().refusal({"--listen=a b", "t"}), "'a b' must be HOST[:PORT]");
}

TEST_CASE("what is unknown and looks like something known is refused with that", "[config]") {
  contains(Program().refusal({"--lisen=x", "t"}), "did you mean '--listen'?");
  contains(Program().refusalOf("data.worker = 3"),
           "key 'data.worker' is unknown; did you mean 'data.workers'?");
  contains(Program().refusalOf("log_level = 'info'"), "did you mean 'log-level'?");
  CHECK(Program().refusalOf("colour = 'red'").find("did you mean") == std::string::npos);
}

TEST_CASE("a wrong file is refused with file, line and key", "[config]") {
  contains(Program().refusal({"--config", "/nonexistent/c.toml", "t"}),
           "/nonexistent/c.toml: No such file");
  contains(Program().refusal({"--config", "/", "t"}), "/: Is a directory");
  contains(Program().refusal({"--config", "/dev/zero", "t"}),
           "/dev/zero: larger than 1048576 bytes");
  contains(Program().refusalOf("listen = 'a'\n\nlisten ="), "c.toml:3: ");
  auto unquoted = Program().refusalOf("workers = 1\n  log-level = info\n");
  contains(unquoted, "c.toml:2: key 'log-level': ");
  contains(unquoted, "(a string must be in quotes)\n");
  contains(Program().refusalOf("listen = mds1:7171"), "key 'listen': ");
  auto unclosed = Program().refusalOf("listen = 'a\n");
  contains(unclosed, "c.toml:1: key 'listen': ");
  CHECK(unclosed.find("in quotes") == std::string::npos);
  CHECK(Program().refusalOf("[data\nsync = true").find("key '") == std::string::npos);
  contains(Program().refusalOf("\nlisen = 'a'"), "c.toml:2: key 'lisen' is unknown");
  contains(Program().refusalOf("[data]\nx = 1"), "c.toml:2: key 'data.x' is unknown");
  contains(Program().refusalOf("[other]\n"), "c.toml:1: key 'other' is unknown");
  contains(Program().refusalOf("listen = 1"), "c.toml:1: key 'listen' must be a string");
  contains(Program().refusalOf("[data]\nsync = 1"), "key 'data.sync' must be true or false");
  contains(Program().refusalOf("[data]\nworkers = 65"),
           "key 'data.workers' is 65, must be 1 to 64");
  contains(Program().refusalOf("[data]\nworkers = -1"),
           "key 'data.workers' is -1, must be 1 to 64");
  contains(Program().refusalOf("[data]\nworkers = '3'"), "key 'data.workers' must be an integer");
  contains(Program().refusalOf("node = 'a'"), "key 'node' must be an array of strings");
  contains(Program().refusalOf("node = ['a', 1]"), "key 'node' must be an array of strings");
  contains(Program().refusalOf("\nlog-level = 'loud'"),
           "c.toml:2: key 'log-level' is 'loud', must be trace, debug");
  contains(Program().refusalOf("listen = ':80'"),
           "c.toml:1: key 'listen' is ':80', must be HOST[:PORT]");
  contains(Program().refusalOf("config = 'other.toml'"), "key 'config' is unknown");
}

TEST_CASE("a wrong value in the file is refused although a flag overrides it", "[config]") {
  test::TempDir dir;
  contains(Program().refusal({"--listen=x", "--config", dir.write("c.toml", "listen = 1"), "t"}),
           "key 'listen' must be a string");
}

TEST_CASE("a check says what is wrong, or that nothing is, and starts nothing", "[config]") {
  test::TempDir dir;
  Program good;
  auto file = dir.write("c.toml", "listen = 'x'");
  auto exit = good.run({"--config", file, "--check-config", "t"});
  REQUIRE(exit);
  CHECK(exit->status == 0);
  CHECK(exit->text == file + " is right\n");
  contains(
      Program().refusal({"--config", dir.write("d.toml", "listen = 1"), "--check-config", "t"}),
      "d.toml:1: ");
}

TEST_CASE("the file may have what else are arguments without a name", "[config]") {
  struct Server {
    std::string target;
    std::vector<std::string> spares;
    std::string wrong;

    Server(std::vector<std::string> arguments) {
      ProgramOptions options("trainfs-test", "Tests.");
      options.addPositional("DIR", target, "what to serve", "target");
      options.addPositional("SPARE", spares, "others", 0, "spares");
      arguments.insert(arguments.begin(), "trainfs-test");
      std::vector<const char*> argv;
      for (auto& argument : arguments) argv.push_back(argument.c_str());
      if (auto exit = options.parse(static_cast<int>(argv.size()), argv.data())) wrong = exit->text;
    }
  };
  test::TempDir dir;
  auto file = dir.write("c.toml", "target = '/from/file'\nspares = ['a', 'b']");
  Server filed({"--config", file});
  CHECK(filed.wrong == "");
  CHECK(filed.target == "/from/file");
  CHECK(filed.spares == std::vector<std::string>{"a", "b"});
  Server argued({"--config", file, "/argument", "c"});
  CHECK(argued.wrong == "");
  CHECK(argued.target == "/argument");
  CHECK(argued.spares == std::vector<std::string>{"c"});
  contains(Server({}).wrong, "DIR is required, as an argument or as 'target' of the configuration");
}

TEST_CASE("SIGHUP takes the log level over, and nothing of a wrong file", "[config]") {
  test::TempDir dir;
  auto file = dir.write("c.toml", "log-level = 'warning'");
  ProgramOptions options("trainfs-test", "Tests.");
  auto workers = std::make_unique<uint32_t>(1);
  options.addForDaemon();
  options.add("workers", *workers, "threads", 1, 8);
  const char* argv[] = {"trainfs-test", "--config", file.c_str()};
  REQUIRE_FALSE(options.parse(3, argv));
  workers.reset();  // a program's variables are its own business afterwards
  dir.write("c.toml", "log-level = 'error'\nworkers = 2");
  options.reread();
  CHECK(spdlog::get_level() == spdlog::level::err);
  dir.write("c.toml", "log-level = 'debug'\nworkers = 99");
  options.reread();
  CHECK(spdlog::get_level() == spdlog::level::err);
  dir.write("c.toml", "");
  options.reread();
  CHECK(spdlog::get_level() == spdlog::level::info);
}

TEST_CASE("a log file that was renamed is begun anew", "[config]") {
  test::TempDir dir;
  auto file = dir.write("c.toml", "log-file = '" + dir.path() + "/log'");
  int standardError = dup(STDERR_FILENO);
  ProgramOptions options("trainfs-test", "Tests.");
  options.addForDaemon();
  const char* argv[] = {"trainfs-test", "--config", file.c_str()};
  options.parseOrExit(3, const_cast<char**>(argv));
  spdlog::info("first");
  std::filesystem::rename(dir / "log", dir / "log.1");
  spdlog::info("second");
  options.reread();
  spdlog::info("third");
  dup2(standardError, STDERR_FILENO);
  close(standardError);
  contains(dir.read("log.1"), "first");
  contains(dir.read("log.1"), "second");
  contains(dir.read("log"), "third");
  CHECK(dir.read("log").find("second") == std::string::npos);
}

TEST_CASE("help and version go to stdout with status 0", "[config]") {
  auto help = Program().run({"--help"});
  REQUIRE(help);
  CHECK(help->status == 0);
  for (const char* part :
       {"Tests.", "--listen", "localhost", "--data.workers", "--config", "--log-level"})
    contains(help->text, part);
  auto version = Program().run({"--version"});
  REQUIRE(version);
  CHECK(version->status == 0);
  contains(version->text, "trainfs-test (trainfs) ");
}

TEST_CASE("hosts and ports are taken apart", "[config]") {
  auto parsed = [](const std::string& text) {
    HostPort result{"?", 1};
    if (!parseHostPort(text, 7171, result)) return std::string("refused");
    return result.host + " " + std::to_string(result.port);
  };
  CHECK(parsed("node-1.example.org") == "node-1.example.org 7171");
  CHECK(parsed("10.0.0.1:80") == "10.0.0.1 80");
  CHECK(parsed("*:0") == "* 0");
  CHECK(parsed("[::1]:65535") == "::1 65535");
  CHECK(parsed("[::1]") == "::1 7171");
  CHECK(parsed("fe80::1%eth0") == "fe80::1%eth0 7171");
  for (const char* bad : {"",     ":",       ":80",   "h:",   "h:x",     "h:80x",  "h:-1",
                          "h:+1", "h:65536", "h:1:2", "[::1", "[::1]80", "[::1]:", "[host]:1",
                          "[]:1", "a b",     "a/b",   "h\n",  "::1%",    "::g"}) {
    CAPTURE(bad);
    CHECK(parsed(bad) == "refused");
  }
  CHECK(parsed(std::string("h\0", 2)) == "refused");
}

TEST_CASE("only the six levels start logging", "[config]") {
  for (const char* level : {"trace", "debug", "info", "warning", "error", "off"})
    CHECK(isLogLevel(level));
  for (const char* level : {"", "INFO", "warn", "critical"}) {
    CHECK_FALSE(isLogLevel(level));
    CHECK_FALSE(startLogging("test", level));
  }
}

}  // namespace trainfs
