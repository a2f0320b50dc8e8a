// Program options: a TOML file and command-line flags over the same names; flags win.
//
//   ProgramOptions options("trainfs-oss", "Serves object storage targets.");
//   options.add("listen", config.listen, "address to listen on, HOST[:PORT]");
//   options.parseOrExit(argc, argv);     // also --config FILE, --log-level LEVEL, --version,
//   --help
//
// A key "listen" in the file is the flag --listen; "workers" under [data] is --data.workers. Errors
// name file, line and key, or flag, and exit with status 2. A flag set on the command line beats
// the file; the file beats the default. Unknown keys in the file are errors. Main thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainfs/host_port.h"

namespace trainfs {

class ProgramOptions {
 public:
  ProgramOptions(std::string program, std::string description);
  ~ProgramOptions();

  // Ends the help: command lines that can be typed, one a line.
  void addExamples(const std::string& lines);

  // What a daemon has besides: --log-file, --check-config.
  void addForDaemon();

  // What is wrong with a value ("must be ..."), or an empty string.
  using Check = std::function<std::string(const std::string&)>;

  // `name` may be followed by other flags of the same meaning: "dry-run,-n".
  void add(const std::string& name, std::string& value, const std::string& help, Check check = {});
  void add(const std::string& name, bool& value, const std::string& help);
  void add(const std::string& name, uint32_t& value, const std::string& help, uint32_t least,
           uint32_t most);
  void add(const std::string& name, std::optional<uint32_t>& value, const std::string& help,
           uint32_t least, uint32_t most);
  void add(const std::string& name, std::vector<std::string>& values, const std::string& help);
  // Arguments without a name, at least `least` of them. With a `key`, the file may have them
  // instead.
  void addPositional(const std::string& name, std::vector<std::string>& values,
                     const std::string& help, size_t least, const std::string& key = "");
  // Exactly one.
  void addPositional(const std::string& name, std::string& value, const std::string& help,
                     const std::string& key);

  // Parses, loads the config file if one is named, starts logging. Prints help, version or the
  // error and exits where that is due.
  void parseOrExit(int argc, char** argv);

  // The same as a value: nothing, when the program may start; else what to print (stdout when
  // status is 0, else stderr) before ending with `status`. Does not start logging.
  struct Exit {
    int status;
    std::string text;
  };
  std::optional<Exit> parse(int argc, const char* const* argv);

  // For a daemon that got SIGHUP: reads the file again, takes over the log level, begins the log
  // file anew where the old one was renamed, and logs which other keys have changed and wait for
  // the next start. If the file is wrong, it logs that, and nothing changes. The variables given to
  // add() are not touched, and may be gone.
  void reread();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

inline constexpr int kExitUsage = 2;  // status for a wrong command line or configuration

}  // namespace trainfs
