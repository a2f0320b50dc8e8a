#include "striping/layout_text.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "striping/layout.h"

namespace trainfs::striping {
namespace {

bool parseNumber(std::string_view text, uint64_t& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

// A 32-bit number, or -1 for 0xffffffff.
bool parseCount(std::string_view text, uint32_t& value) {
  uint64_t number = 0;
  if (text == "-1") return value = ~uint32_t{0}, true;
  if (!parseNumber(text, number) || number >= ~uint32_t{0}) return false;
  value = static_cast<uint32_t>(number);
  return true;
}

// Cuts off and returns what is before the first separator.
std::string_view cut(std::string_view& rest, char separator) {
  size_t length = std::min(rest.find(separator), rest.size());
  auto head = rest.substr(0, length);
  rest.remove_prefix(std::min(length + 1, rest.size()));
  return head;
}

// "1,2,3", at most kStripesMax of them.
template <typename Add>
bool parseList(std::string_view text, uint64_t valueMax, Add add) {
  size_t count = std::count(text.begin(), text.end(), ',') + 1;
  if (text.empty() || text.back() == ',' || count > kStripesMax) return false;
  while (!text.empty()) {
    uint64_t value = 0;
    if (!parseNumber(cut(text, ','), value) || value > valueMax) return false;
    add(value);
  }
  return true;
}

// A component line with what it leaves open.
struct Line {
  Component component;
  std::optional<uint64_t> start, stripeBytes;
  std::optional<uint32_t> stripeCount;
};

bool parsePattern(std::string_view text, Pattern& pattern) {
  if (text == "raid0") return pattern = Pattern::kRaid0, true;
  if (text == "mdt") return pattern = Pattern::kMdt, true;
  return false;
}

bool parseEnd(std::string_view text, uint64_t& end) {
  if (text == "eof" || text == "-1") return end = kExtentEof, true;
  return parseSize(text, end);
}

// False: no such value. `known` is false if there is no such field.
bool parseField(std::string_view key, std::string_view value, Line& line, bool& known) {
  Component& component = line.component;
  known = true;
  if (key == "start") return parseSize(value, line.start.emplace());
  if (key == "end") return parseEnd(value, component.endBytes);
  if (key == "pattern") return parsePattern(value, component.pattern);
  if (key == "stripe_size") return parseSize(value, line.stripeBytes.emplace());
  if (key == "stripe_count") return parseCount(value, line.stripeCount.emplace());
  if (key == "stripe_offset") return parseCount(value, component.stripeOffset);
  if (key == "pool") return component.pool = value, checkPoolName(component.pool).empty();
  if (key == "osts")
    return parseList(value, kSingleOstChains - 1, [&](uint64_t ost) {
      component.ostList.push_back(static_cast<uint32_t>(ost));
    });
  if (key == "chains")
    return parseList(value, ~uint32_t{0}, [&](uint64_t chain) {
      component.chains.push_back({static_cast<uint32_t>(chain)});
    });
  if (key == "exists")
    return parseList(value, 1, [&](uint64_t one) { component.exists.push_back(one == 1); });
  return known = false;
}

std::string parseFields(std::string_view text, Line& line) {
  std::vector<std::string_view> seen;
  while (!text.empty()) {
    auto field = cut(text, ' ');
    if (field.empty()) continue;
    auto value = field;
    auto key = cut(value, '=');
    if (key.size() == field.size()) return "'" + std::string(field) + "' is not KEY=VALUE";
    bool known = false;
    bool good = parseField(key, value, line, known);
    if (!known) return "there is no field '" + std::string(key) + "'";
    if (!good) return "bad " + std::string(key) + " '" + std::string(value) + "'";
    if (std::find(seen.begin(), seen.end(), key) != seen.end())
      return "'" + std::string(key) + "' is given twice";
    seen.push_back(key);
  }
  return {};
}

Component complete(Line line, uint64_t endBefore, StateFields state) {
  Component& component = line.component;
  component.startBytes = line.start.value_or(endBefore);
  component.stripeBytes = line.stripeBytes.value_or(0);
  if (component.stripeBytes == 0) component.stripeBytes = defaultStripeBytes(component.endBytes);
  component.stripeCount = line.stripeCount.value_or(0);
  if (component.stripeCount == 0)
    component.stripeCount = std::max<uint32_t>(1, component.ostList.size());
  if (state == StateFields::kIgnore) {
    component.chains.clear();
    component.exists.clear();
  }
  return std::move(component);
}

std::string parseInto(std::string_view text, StateFields state, Layout& layout) {
  constexpr std::string_view kGeneration = "generation=";
  if (text.size() > kLayoutTextBytesMax) return "the text is too long";
  bool first = true;
  while (!text.empty()) {
    auto row = cut(text, '\n');
    bool hasGeneration = std::exchange(first, false) && row.starts_with(kGeneration);
    if (hasGeneration) {
      uint64_t generation = 0;
      auto value = row.substr(kGeneration.size());
      if (!parseNumber(value, generation) || generation > ~uint32_t{0})
        return "bad generation '" + std::string(value) + "'";
      if (state == StateFields::kKeep) layout.generation = static_cast<uint32_t>(generation);
      continue;
    }
    if (row.find_first_not_of(' ') == row.npos) continue;
    std::string place = "component " + std::to_string(layout.components.size() + 1) + ": ";
    if (layout.components.size() == kComponentsMax) return place + "too many components";
    Line line;
    if (auto error = parseFields(row, line); !error.empty()) return place + error;
    uint64_t endBefore = layout.components.empty() ? 0 : layout.components.back().endBytes;
    layout.components.push_back(complete(std::move(line), endBefore, state));
  }
  if (layout.components.empty()) return "there is no component";
  return checkLayout(layout);
}

std::string countText(uint32_t count) {
  return count == ~uint32_t{0} ? "-1" : std::to_string(count);
}

template <typename List, typename Text>
void appendList(std::string& line, const char* key, const List& list, Text text) {
  const char* separator = key;
  for (const auto& element : list) {
    line += separator + text(element);
    separator = ",";
  }
}

std::string formatComponent(const Component& component) {
  bool eof = component.endBytes == kExtentEof;
  std::string line = "start=" + std::to_string(component.startBytes);
  line += " end=" + (eof ? "eof" : std::to_string(component.endBytes));
  line += component.pattern == Pattern::kMdt ? " pattern=mdt" : " pattern=raid0";
  line += " stripe_size=" + std::to_string(component.stripeBytes);
  line += " stripe_count=" + countText(component.stripeCount);
  line += " stripe_offset=" + countText(component.stripeOffset);
  if (!component.pool.empty()) line += " pool=" + component.pool;
  appendList(line, " osts=", component.ostList, [](uint32_t ost) { return std::to_string(ost); });
  appendList(line, " chains=", component.chains,
             [](ChainId chain) { return std::to_string(chain.value); });
  appendList(line, " exists=", component.exists,
             [](bool exists) { return std::string(exists ? "1" : "0"); });
  return line;
}

}  // namespace

std::string formatLayout(const Layout& layout) {
  std::string text = "generation=" + std::to_string(layout.generation);
  for (const Component& component : layout.components) text += "\n" + formatComponent(component);
  return text;
}

ParsedLayout parseLayout(std::string_view text, StateFields state) {
  ParsedLayout parsed;
  parsed.error = parseInto(text, state, parsed.layout);
  return parsed;
}

bool parseSize(std::string_view text, uint64_t& bytes) {
  constexpr std::string_view kSuffixes = "kKmMgGtTpPeE";
  unsigned shift = 0;
  if (!text.empty()) {
    if (size_t suffix = kSuffixes.find(text.back()); suffix != kSuffixes.npos) {
      shift = 10 * (static_cast<unsigned>(suffix) / 2 + 1);
      text.remove_suffix(1);
    }
  }
  uint64_t number = 0;
  if (!parseNumber(text, number) || number > (~uint64_t{0} >> shift)) return false;
  bytes = number << shift;
  return true;
}

}  // namespace trainfs::striping
