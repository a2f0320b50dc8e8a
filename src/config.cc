#include "trainfs/config.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <sstream>
#include <variant>

#include "small_file.h"
#include "toml_error.h"
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

struct Text {
  std::string* value;
  ProgramOptions::Check check;  // may be empty
};

struct Entry {
  CLI::Option* option = nullptr;
  std::variant<Text, bool*, Number<uint32_t>, Number<std::optional<uint32_t>>,
               std::vector<std::string>*>
      target;
  bool live = false;  // may change while the program runs
};

// Each checks the node and, if `store`, takes its value over: a wrong value is wrong under a flag,
// too.
std::string setFrom(const toml::node& node, const Text& target, bool store) {
  auto value = node.value_exact<std::string>();
  if (!value) return "must be a string";
  if (target.check)
    if (auto wrong = target.check(*value); !wrong.empty()) return "is '" + *value + "', " + wrong;
  if (store) *target.value = *value;
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

// How many letters must be changed, added or left out to make one of the other.
size_t distance(std::string_view one, std::string_view other) {
  std::vector<size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < one.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < other.size(); ++j) {
      size_t replaced = diagonal + (one[i] != other[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string checkLogLevel(const std::string& level) {
  return isLogLevel(level) ? "" : "must be trace, debug, info, warning, error or off";
}

}  // namespace

struct ProgramOptions::Impl {
  std::string program;
  CLI::App app;
  std::map<std::string, Entry, std::less<>> entries;
  std::map<std::string, std::string> positionalKeys;  // name -> key of the file, may be empty
  std::string configPath;
  std::map<std::string, std::string> fileValues;  // as the file had them last
  std::string logLevel = kDefaultLogLevel, logFile;
  bool checkOnly = false;

  static constexpr const char* kDefaultLogLevel = "info";

  Impl(std::string name, std::string description)
      : program(std::move(name)), app(std::move(description), program) {}

  void enter(const std::string& name, CLI::Option* option, decltype(Entry::target) target,
             bool live = false) {
    entries.insert_or_assign(name.substr(0, name.find(',')), Entry{option, target, live});
  }

  // What the file says; `values` is what it has. Again: only what may change is stored. Empty, or
  // what is wrong.
  enum class Pass { kFirst, kAgain };
  using Values = std::map<std::string, std::string>;
  std::string load(Pass pass, Values& values);
  std::string load(const toml::table& table, const std::string& prefix, Pass pass, Values& values);
  std::string suggestion(const std::string& unknown, const std::string& before) const;
  std::string missingPositional() const;
};

std::string ProgramOptions::Impl::load(Pass pass, Values& values) {
  std::string content;
  if (auto wrong = readSmallFile(configPath, kConfigFileBytesMax, content); !wrong.empty())
    return wrong;
  try {
    return load(toml::parse(content, configPath), "", pass, values);
  } catch (const toml::parse_error& error) {
    return parseErrorText(configPath, content, error);
  }
}

std::string ProgramOptions::Impl::load(const toml::table& table, const std::string& prefix,
                                       Pass pass, Values& values) {
  for (auto& [key, node] : table) {
    std::string name = prefix + std::string(key.str());
    auto fail = [&](const std::string& what) {
      return wrongKey(configPath, key.source().begin.line, name, what);
    };
    auto found = entries.find(name);
    if (found == entries.end()) {
      auto* inner = node.as_table();
      auto below = entries.lower_bound(name + ".");
      bool known = below != entries.end() && below->first.starts_with(name + ".");
      if (inner == nullptr || !known) return fail("is unknown" + suggestion(name, ""));
      if (auto wrong = load(*inner, name + ".", pass, values); !wrong.empty()) return wrong;
      continue;
    }
    auto& entry = found->second;
    bool flagged = entry.option->count() > 0;
    bool store = !flagged && (pass == Pass::kFirst || entry.live);
    auto set = [&](auto& target) { return setFrom(node, target, store); };
    if (auto wrong = std::visit(set, entry.target); !wrong.empty()) return fail(wrong);
    std::ostringstream text;
    node.visit([&](auto& value) { text << value; });
    values[name] = text.str();
  }
  return "";
}

// ", did you mean ...?", or nothing if no known name is like it.
std::string ProgramOptions::Impl::suggestion(const std::string& unknown,
                                             const std::string& before) const {
  size_t nearest = std::min<size_t>(3, unknown.size() / 2) + 1;
  const std::string* best = nullptr;
  for (auto& [name, entry] : entries) {
    auto away = distance(unknown, name);
    if (away < nearest) nearest = away, best = &name;
  }
  return best == nullptr ? "" : "; did you mean '" + before + *best + "'?";
}

std::string ProgramOptions::Impl::missingPositional() const {
  for (auto& [name, key] : positionalKeys) {
    auto& entry = entries.find(key)->second;
    auto empty = [](auto& target) {
      using Target = std::decay_t<decltype(target)>;
      if constexpr (std::is_same_v<Target, Text>) return target.value->empty();
      if constexpr (std::is_same_v<Target, std::vector<std::string>*>) return target->empty();
      return false;
    };
    if (std::visit(empty, entry.target))
      return name + " is required, as an argument or as '" + key + "' of the configuration file";
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
  add("log-level", impl_->logLevel, "trace, debug, info, warning, error or off", checkLogLevel);
  impl_->entries.find("log-level")->second.live = true;
}

ProgramOptions::~ProgramOptions() = default;

void ProgramOptions::addExamples(const std::string& lines) {
  impl_->app.footer("Examples:\n" + lines);
}

void ProgramOptions::addForDaemon() {
  add("log-file", impl_->logFile, "append the log to this file; default: standard error");
  impl_->entries.find("log-file")->second.live = true;
  impl_->app.add_flag("--check-config", impl_->checkOnly,
                      "say whether options and configuration file are right, and do nothing else");
}

void ProgramOptions::add(const std::string& name, std::string& value, const std::string& help,
                         Check check) {
  auto* option = impl_->app.add_option("--" + name, value, help)->take_last();
  if (!value.empty()) option->capture_default_str();
  if (check)
    option->check([check](const std::string& text) {
      auto wrong = check(text);
      return wrong.empty() ? wrong : "'" + text + "' " + wrong;
    });
  impl_->enter(name, option, Text{&value, std::move(check)});
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
                                   const std::string& help, size_t least, const std::string& key) {
  auto* option = impl_->app.add_option(name, values, help);
  option->expected(key.empty() ? static_cast<int>(least) : 0, kPositionalsMax);
  if (key.empty()) {
    option->required(least > 0);
    return;
  }
  impl_->enter(key, option, &values);
  if (least > 0) impl_->positionalKeys[name] = key;
}

void ProgramOptions::addPositional(const std::string& name, std::string& value,
                                   const std::string& help, const std::string& key) {
  impl_->enter(key, impl_->app.add_option(name, value, help), Text{&value, {}});
  impl_->positionalKeys[name] = key;
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
  } catch (const CLI::ExtrasError& error) {
    std::string hint;
    for (auto& extra : impl_->app.remaining())
      if (hint.empty() && extra.starts_with("--"))
        hint = impl_->suggestion(extra.substr(2, extra.find('=') - 2), "--");
    return fail(std::string(error.what()) + hint + " (see " + impl_->program + " --help)");
  } catch (const CLI::ParseError& error) {
    return fail(std::string(error.what()) + " (see " + impl_->program + " --help)");
  }
  if (!impl_->configPath.empty())
    if (auto wrong = impl_->load(Impl::Pass::kFirst, impl_->fileValues); !wrong.empty())
      return fail(wrong);
  if (auto wrong = impl_->missingPositional(); !wrong.empty())
    return fail(wrong + " (see " + impl_->program + " --help)");
  if (impl_->checkOnly)
    return Exit{
        0, (impl_->configPath.empty() ? "the command line" : impl_->configPath) + " is right\n"};
  return std::nullopt;
}

void ProgramOptions::parseOrExit(int argc, char** argv) {
  auto leave = [](const Exit& exit) {
    std::fputs(exit.text.c_str(), exit.status == 0 ? stdout : stderr);
    std::exit(exit.status);
  };
  if (auto exit = parse(argc, argv)) leave(*exit);
  if (!impl_->logFile.empty())
    if (auto wrong = logTo(impl_->logFile); !wrong.empty())
      leave({kExitUsage, impl_->program + ": " + wrong + "\n"});
  startLogging(impl_->program, impl_->logLevel);
}

void ProgramOptions::reread() {
  auto& impl = *impl_;
  auto levelBefore = impl.logLevel, fileBefore = impl.logFile;
  auto flagged = [&](const char* name) {
    return impl.entries.find(name)->second.option->count() > 0;
  };
  if (!flagged("log-level")) impl.logLevel = Impl::kDefaultLogLevel;
  if (!flagged("log-file")) impl.logFile.clear();
  Impl::Values values;
  std::string wrong;
  if (!impl.configPath.empty()) wrong = impl.load(Impl::Pass::kAgain, values);
  // Back to what stderr was at the start there is no way.
  if (wrong.empty() && !impl.logFile.empty()) wrong = logTo(impl.logFile);
  if (!wrong.empty()) {
    impl.logLevel = levelBefore, impl.logFile = fileBefore;
    spdlog::error("{}; everything stays as it was", wrong);
    return;
  }
  setLogLevel(impl.logLevel);
  std::string later;
  for (auto& [name, entry] : impl.entries)
    if (!entry.live && entry.option->count() == 0 && values[name] != impl.fileValues[name])
      later += (later.empty() ? "" : ", ") + name;
  spdlog::info("asked to read the configuration again: log level {}{}{}", impl.logLevel,
               later.empty() ? "" : "; changed, but only from the next start on: ", later);
}

}  // namespace trainfs
