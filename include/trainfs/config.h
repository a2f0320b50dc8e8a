// Program options: a TOML file and command-line flags over the same names; flags win.
//
//   ProgramOptions options("trainfs-oss", "Serves object storage targets of a trainfs file
//   system."); options.add("listen", config.listen, "address to listen on, HOST[:PORT]");
//   options.parseOrExit(argc, argv);     // also provides --config FILE, --log-level LEVEL,
//   --version, --help
//
// A key "listen" in the file is the flag --listen; "workers" under [data] is --data.workers. Errors
// name file, line and key, or flag, and exit with status 2. A flag set on the command line beats
// the file; the file beats the default. Unknown keys in the file are errors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trainfs {

class ProgramOptions {
 public:
  ProgramOptions(std::string program, std::string description);
  ~ProgramOptions();

  // `name` may be followed by other flags of the same meaning: "dry-run,-n".
  void add(const std::string& name, std::string& value, const std::string& help);
  void add(const std::string& name, bool& value, const std::string& help);
  void add(const std::string& name, uint32_t& value, const std::string& help, uint32_t least,
           uint32_t most);
  void add(const std::string& name, std::optional<uint32_t>& value, const std::string& help,
           uint32_t least, uint32_t most);
  void add(const std::string& name, std::vector<std::string>& values, const std::string& help);
  // Arguments without a name, at least `least` of them.
  void addPositional(const std::string& name, std::vector<std::string>& values,
                     const std::string& help, size_t least);

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

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// "host", "host:port", "[v6]:port", "v6" -> host (without brackets) and port. Returns false on
// garbage. Port 0 passes: to a listener it means any free one. So does the host "*".
struct HostPort {
  std::string host;
  uint16_t port = 0;
};
bool parseHostPort(const std::string& text, uint16_t defaultPort, HostPort& result);

inline constexpr int kExitUsage = 2;  // status for a wrong command line or configuration

inline constexpr uint16_t kDefaultMdsPort = 7171;
inline constexpr uint16_t kDefaultOssDataPort = 7180;  // first of one per worker

}  // namespace trainfs
