#include "trainfs/config.h"

#include <arpa/inet.h>

#include <toml++/toml.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <variant>

#include "small_file.h"
#include "trainfs/logging.h"

namespace trainfs {

namespace {

constexpr size_t kConfigFileBytesMax = 1 << 20;
constexpr uint32_t kPositionalsMax = 1u << 20;

template <typename T>  // uint32_t, or an optional one
struct Number {
  T* value;
  uint32_t least, most;
};

struct Entry {
  CLI::Option* option = nullptr;
  std::variant<std::string*, bool*, Number<uint32_t>, Number<std::optional<uint32_t>>,
               std::vector<std::string>*>
      target;
};

// Each checks the node and, if `store`, takes its value over: a wrong value is wrong under a flag,
// too.
std::string setFrom(const toml::node& node, std::string* target, bool store) {
  auto value = node.value_exact<std::string>();
  if (!value) return "must be a string";
  if (store) *target = *value;
  return "";
}

std::string setFrom(const toml::node& node, bool* target, bool store) {
  auto value = node.value_exact<bool>();
  if (!value) return "must be true or false";
  if (store) *target = *value;
  return "";
}

template <typename T>
std::string setFrom(const toml::node& node, Number<T> target, bool store) {
  auto value = node.value_exact<int64_t>();
  if (!value) return "must be an integer";
  if (*value < target.least || *value > target.most)
    return "is " + std::to_string(*value) + ", must be " + std::to_string(target.least) + " to " +
           std::to_string(target.most);
  if (store) *target.value = static_cast<uint32_t>(*value);
  return "";
}

std::string setFrom(const toml::node& node, std::vector<std::string>* target, bool store) {
  auto* array = node.as_array();
  if (array == nullptr) return "must be an array of strings";
  std::vector<std::string> values;
  for (auto& element : *array) {
    auto value = element.value_exact<std::string>();
    if (!value) return "must be an array of strings";
    values.push_back(*value);
  }
  if (store) *target = std::move(values);
  return "";
}

bool isHost(const std::string& host) {
  if (host == "*") return true;
  auto legal = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_';
  };
  return !host.empty() && host.size() <= 255 && std::all_of(host.begin(), host.end(), legal);
}

bool isV6(std::string host) {
  if (auto zone = host.find('%'); zone != std::string::npos) {
    if (!isHost(host.substr(zone + 1))) return false;
    host.resize(zone);
  }
  in6_addr address;
  return inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool parsePort(std::string_view text, uint16_t& port) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

struct ProgramOptions::Impl {
  std::string program;
  CLI::App app;
  std::map<std::string, Entry, std::less<>> entries;
  std::string configPath;
  std::string logLevel = "info";

  Impl(std::string name, std::string description)
      : program(std::move(name)), app(std::move(description), program) {}

  void enter(const std::string& name, CLI::Option* option, decltype(Entry::target) target) {
    entries.emplace(name.substr(0, name.find(',')), Entry{option, target});
  }

  // Empty, or what is wrong.
  std::string load();
  std::string load(const toml::table& table, const std::string& prefix);
};

std::string ProgramOptions::Impl::load() {
  std::string content;
  if (auto wrong = readSmallFile(configPath, kConfigFileBytesMax, content); !wrong.empty())
    return wrong;
  try {
    return load(toml::parse(content, configPath), "");
  } catch (const toml::parse_error& error) {
    return configPath + ":" + std::to_string(error.source().begin.line) + ": " +
           std::string(error.description());
  }
}

std::string ProgramOptions::Impl::load(const toml::table& table, const std::string& prefix) {
  for (auto& [key, node] : table) {
    std::string name = prefix + std::string(key.str());
    auto fail = [&](const std::string& what) {
      return configPath + ":" + std::to_string(node.source().begin.line) + ": key '" + name + "' " +
             what;
    };
    auto found = entries.find(name);
    if (found == entries.end()) {
      auto* inner = node.as_table();
      auto below = entries.lower_bound(name + ".");
      bool known = below != entries.end() && below->first.starts_with(name + ".");
      if (inner == nullptr || !known) return fail("is unknown");
      if (auto wrong = load(*inner, name + "."); !wrong.empty()) return wrong;
      continue;
    }
    auto& entry = found->second;
    bool flagged = entry.option->count() > 0;
    auto set = [&](auto target) { return setFrom(node, target, !flagged); };
    auto wrong = std::visit(set, entry.target);
    if (!wrong.empty()) return fail(wrong);
  }
  return "";
}

ProgramOptions::ProgramOptions(std::string program, std::string description)
    : impl_(std::make_unique<Impl>(std::move(program), std::move(description))) {
  impl_->app.set_version_flag("--version", impl_->program + " (trainfs) " + TRAINFS_VERSION);
  impl_->app
      .add_option("--config", impl_->configPath,
                  "TOML file with values for these options; flags win")
      ->take_last()
      ->type_name("FILE");
  add("log-level", impl_->logLevel, "trace, debug, info, warning, error or off");
}

ProgramOptions::~ProgramOptions() = default;

void ProgramOptions::add(const std::string& name, std::string& value, const std::string& help) {
  impl_->enter(name,
               impl_->app.add_option("--" + name, value, help)->take_last()->capture_default_str(),
               &value);
}

void ProgramOptions::add(const std::string& name, bool& value, const std::string& help) {
  impl_->enter(name, impl_->app.add_flag("--" + name, value, help)->take_last(), &value);
}

void ProgramOptions::add(const std::string& name, uint32_t& value, const std::string& help,
                         uint32_t least, uint32_t most) {
  auto* option = impl_->app.add_option("--" + name, value, help)
                     ->take_last()
                     ->capture_default_str()
                     ->check(CLI::Range(least, most));
  impl_->enter(name, option, Number<uint32_t>{&value, least, most});
}

void ProgramOptions::add(const std::string& name, std::optional<uint32_t>& value,
                         const std::string& help, uint32_t least, uint32_t most) {
  auto* option =
      impl_->app.add_option("--" + name, value, help)->take_last()->check(CLI::Range(least, most));
  impl_->enter(name, option, Number<std::optional<uint32_t>>{&value, least, most});
}

void ProgramOptions::add(const std::string& name, std::vector<std::string>& values,
                         const std::string& help) {
  // One value per flag: a greedy list would swallow the arguments behind it.
  auto* option =
      impl_->app.add_option("--" + name, values, help)->allow_extra_args(false)->take_all();
  impl_->enter(name, option, &values);
}

void ProgramOptions::addPositional(const std::string& name, std::vector<std::string>& values,
                                   const std::string& help, size_t least) {
  impl_->app.add_option(name, values, help)
      ->expected(static_cast<int>(least), kPositionalsMax)
      ->required(least > 0);
}

std::optional<ProgramOptions::Exit> ProgramOptions::parse(int argc, const char* const* argv) {
  auto fail = [&](const std::string& what) {
    return Exit{kExitUsage, impl_->program + ": " + what + "\n"};
  };
  try {
    impl_->app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Exit{0, impl_->app.help()};
  } catch (const CLI::CallForVersion& version) {
    return Exit{0, std::string(version.what()) + "\n"};
  } catch (const CLI::ParseError& error) {
    return fail(std::string(error.what()) + " (see " + impl_->program + " --help)");
  }
  if (!impl_->configPath.empty())
    if (auto wrong = impl_->load(); !wrong.empty()) return fail(wrong);
  if (!isLogLevel(impl_->logLevel))
    return fail("log-level '" + impl_->logLevel +
                "' must be trace, debug, info, warning, error or off");
  return std::nullopt;
}

void ProgramOptions::parseOrExit(int argc, char** argv) {
  if (auto exit = parse(argc, argv)) {
    std::fputs(exit->text.c_str(), exit->status == 0 ? stdout : stderr);
    std::exit(exit->status);
  }
  startLogging(impl_->program, impl_->logLevel);
}

bool parseHostPort(const std::string& text, uint16_t defaultPort, HostPort& result) {
  HostPort parsed{.host = text, .port = defaultPort};
  if (!text.empty() && text[0] == '[') {
    auto close = text.find(']');
    if (close == std::string::npos) return false;
    parsed.host = text.substr(1, close - 1);
    auto rest = std::string_view(text).substr(close + 1);
    if (!rest.empty() && (rest[0] != ':' || !parsePort(rest.substr(1), parsed.port))) return false;
    if (!isV6(parsed.host)) return false;
  } else if (!isV6(text)) {
    auto colon = text.find(':');
    parsed.host = text.substr(0, colon);
    if (colon != std::string::npos &&
        !parsePort(std::string_view(text).substr(colon + 1), parsed.port))
      return false;
    if (!isHost(parsed.host)) return false;
  }
  result = std::move(parsed);
  return true;
}

}  // namespace trainfs
