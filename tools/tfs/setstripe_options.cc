#include "setstripe_options.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "command.h"
#include "sizes.h"
#include "striping/layout.h"

namespace trainfs::tfs {
namespace {

// Every long name that lfs has; those after `help` are known but not there yet.
constexpr option kLongOptions[] = {
    {"stripe-count", required_argument, nullptr, 'c'},
    {"stripe_count", required_argument, nullptr, 'c'},
    {"stripe-size", required_argument, nullptr, 'S'},
    {"stripe_size", required_argument, nullptr, 'S'},
    {"stripe-index", required_argument, nullptr, 'i'},
    {"stripe_index", required_argument, nullptr, 'i'},
    {"ost", required_argument, nullptr, 'o'},
    {"ost-list", required_argument, nullptr, 'o'},
    {"ost_list", required_argument, nullptr, 'o'},
    {"pool", required_argument, nullptr, 'p'},
    {"component-end", required_argument, nullptr, 'E'},
    {"comp-end", required_argument, nullptr, 'E'},
    {"layout", required_argument, nullptr, 'L'},
    {"delete", no_argument, nullptr, 'd'},
    {"copy", required_argument, nullptr, kLongCopy},
    {"mode", required_argument, nullptr, kLongMode},
    {"help", no_argument, nullptr, kLongHelp},
    {"mirror-count", optional_argument, nullptr, 'N'},
    {"overstripe-count", required_argument, nullptr, 'C'},
    {"extension-size", required_argument, nullptr, 'z'},
    {"ext-size", required_argument, nullptr, 'z'},
    {"yaml", required_argument, nullptr, 'y'},
    {"component-add", no_argument, nullptr, kLongUnsupported},
    {"comp-add", no_argument, nullptr, kLongUnsupported},
    {"component-del", no_argument, nullptr, kLongUnsupported},
    {"comp-del", no_argument, nullptr, kLongUnsupported},
    {"component-set", no_argument, nullptr, kLongUnsupported},
    {"comp-set", no_argument, nullptr, kLongUnsupported},
    {"ec", required_argument, nullptr, kLongUnsupported},
    {"ec-stripe-count", required_argument, nullptr, kLongUnsupported},
    {"foreign", optional_argument, nullptr, kLongUnsupported},
    {nullptr, 0, nullptr, 0}};
constexpr const char* kShortOptions = ":c:S:i:o:p:E:L:dhN::C:z:y:I:";

// What the options since the last -E say; what they do not say stays open.
struct ComponentOptions {
  std::optional<uint64_t> end, stripeBytes;
  std::optional<uint32_t> stripeCount, stripeOffset;
  std::vector<uint32_t> osts;
  std::string pool;

  bool anything() const {
    return end || stripeBytes || stripeCount || stripeOffset || !osts.empty() || !pool.empty();
  }
};

class Parser {
 public:
  SetstripeRequest parse(int argc, char** argv);

 private:
  std::string take(int option, const std::string& value);
  std::string takeCount(const std::string& value);
  std::string takeSize(const std::string& value);
  std::string takeIndex(const std::string& value);
  std::string takeOsts(const std::string& value);
  std::string takePool(const std::string& value);
  std::string takeEnd(const std::string& value);
  std::string takeMode(const std::string& value);
  std::string finishComponent();
  std::string finish();

  SetstripeRequest request_;
  ComponentOptions current_;
};

// A whole number in C notation, as lfs takes it.
bool parseInteger(const std::string& text, long least, long most, long& value) {
  char* end = nullptr;
  errno = 0;
  value = std::strtol(text.c_str(), &end, 0);
  return errno == 0 && end != text.c_str() && *end == '\0' && value >= least && value <= most;
}

std::string Parser::takeCount(const std::string& value) {
  long count = 0;
  if (!parseInteger(value, -1, kStripesMax, count)) return "invalid stripe count '" + value + "'";
  if (count == 0)
    current_.stripeCount.reset();
  else
    current_.stripeCount = count == -1 ? kStripeCountAll : static_cast<uint32_t>(count);
  return {};
}

std::string Parser::takeSize(const std::string& value) {
  uint64_t bytes = 0;
  if (!parseStripeSize(value, bytes) || bytes % kBlockBytes != 0)
    return "invalid stripe size '" + value + "': it must be a multiple of 64K";
  if (bytes > kStripeBytesMax) return "invalid stripe size '" + value + "': at most 4G";
  if (bytes == 0)
    current_.stripeBytes.reset();
  else
    current_.stripeBytes = bytes;
  return {};
}

std::string Parser::takeIndex(const std::string& value) {
  long index = 0;
  if (!parseInteger(value, -1, kSingleOstChains - 1, index))
    return "invalid stripe offset '" + value + "'";
  if (index == -1)
    current_.stripeOffset.reset();
  else
    current_.stripeOffset = static_cast<uint32_t>(index);
  return {};
}

// "1,2-4,7"; several -o add up.
std::string Parser::takeOsts(const std::string& value) {
  std::string wrong = "invalid OST target(s) '" + value + "'";
  for (size_t begin = 0; begin <= value.size();) {
    size_t comma = std::min(value.find(',', begin), value.size());
    std::string item = value.substr(begin, comma - begin);
    begin = comma + 1;
    size_t dash = item.find('-');
    long first = 0, last = 0;
    if (!parseInteger(item.substr(0, dash), 0, kSingleOstChains - 1, first)) return wrong;
    last = first;
    if (dash != item.npos &&
        (!parseInteger(item.substr(dash + 1), 0, kSingleOstChains - 1, last) || last < first))
      return wrong;
    for (long ost = first; ost <= last; ost++) {
      if (current_.osts.size() == kStripesMax) return wrong + ": too many";
      auto index = static_cast<uint32_t>(ost);
      if (std::find(current_.osts.begin(), current_.osts.end(), index) != current_.osts.end())
        return wrong + ": OST " + std::to_string(ost) +
               " twice; overstriping (-C) is not supported";
      current_.osts.push_back(index);
    }
  }
  return {};
}

std::string Parser::takePool(const std::string& value) {
  current_.pool.clear();
  if (value.empty() || value == "inherit" || value == "ignore" || value == "none") return {};
  std::string pool = value.substr(value.find('.') == value.npos ? 0 : value.find('.') + 1);
  if (pool.empty()) return "invalid pool name '" + value + "'";
  if (auto error = striping::checkPoolName(pool); !error.empty())
    return "invalid pool name '" + value + "': " + error;
  current_.pool = pool;
  if (std::find(request_.pools.begin(), request_.pools.end(), pool) == request_.pools.end())
    request_.pools.push_back(pool);
  return {};
}

std::string Parser::takeEnd(const std::string& value) {
  uint64_t end = kExtentEof;
  bool eof = value == "-1" || value == "eof" || value == "EOF";
  if (!eof && (!parseStripeSize(value, end) || end == 0 || end % kBlockBytes != 0))
    return "invalid component end '" + value + "': it must be a multiple of 64K, or -1";
  if (current_.end)
    if (auto error = finishComponent(); !error.empty()) return error;
  current_.end = end;
  return {};
}

std::string Parser::takeMode(const std::string& value) {
  char* end = nullptr;
  unsigned long mode = std::strtoul(value.c_str(), &end, 8);
  if (value.empty() || *end != '\0' || mode > 07777) return "invalid mode '" + value + "'";
  request_.mode = static_cast<mode_t>(mode);
  return {};
}

std::string Parser::take(int option, const std::string& value) {
  switch (option) {
    case 'c':
      return takeCount(value);
    case 'S':
      return takeSize(value);
    case 'i':
      return takeIndex(value);
    case 'o':
      return takeOsts(value);
    case 'p':
      return takePool(value);
    case 'E':
      return takeEnd(value);
    case 'd':
      request_.remove = true;
      return {};
    case 'h':
    case kLongHelp:
      request_.help = true;
      return {};
    case kLongCopy:
      request_.copyFrom = value;
      return {};
    case kLongMode:
      return takeMode(value);
    case 'L':
      if (value == "raid0") return {};
      if (value == "mdt") return "layout 'mdt' is not supported: there is no data on MDTs yet";
      return "layout '" + value + "' is unknown; supported is 'raid0'";
    case 'N':
      return "mirrors (-N) are not supported: files have one replica yet";
    case 'C':
      return "overstriping (-C) is not supported: a file has one stripe per OST";
    case 'z':
      return "extension components (-z) are not supported";
    case 'y':
      return "layouts from YAML (-y) are not supported; --copy takes another file's layout";
    case 'I':
      return "option -I is not supported: components of a file cannot be changed";
    default:
      return "not supported";
  }
}

// Turns the options since the last -E into a component. As in lfs, the next one inherits stripe
// size, stripe count and pool where they were given.
std::string Parser::finishComponent() {
  Component component;
  auto& components = request_.layout.components;
  if (components.size() == kComponentsMax)
    return "more than " + std::to_string(kComponentsMax) + " components";
  component.startBytes = components.empty() ? 0 : components.back().endBytes;
  component.endBytes = current_.end.value_or(kExtentEof);
  component.stripeBytes =
      current_.stripeBytes.value_or(striping::defaultStripeBytes(component.endBytes));
  component.stripeCount = current_.stripeCount.value_or(1);
  component.stripeOffset = current_.stripeOffset.value_or(kAnyOst);
  component.pool = current_.pool;
  auto& osts = current_.osts;
  if (!osts.empty()) {
    uint32_t count = component.stripeCount;
    if (current_.stripeCount && count != kStripeCountAll && count != osts.size())
      return "stripe count " + std::to_string(count) + " is not the number of OSTs listed (" +
             std::to_string(osts.size()) + ")";
    component.stripeCount = static_cast<uint32_t>(osts.size());
    if (current_.stripeOffset) {
      auto first = std::find(osts.begin(), osts.end(), *current_.stripeOffset);
      if (first == osts.end())
        return "stripe offset " + std::to_string(*current_.stripeOffset) +
               " is not in the list of OSTs";
      std::rotate(osts.begin(), first, osts.end());
    }
    component.stripeOffset = kAnyOst;
    component.ostList = osts;
  }
  components.push_back(component);
  ComponentOptions next;
  next.stripeBytes = current_.stripeBytes;
  next.stripeCount = current_.stripeCount;
  next.pool = current_.pool;
  current_ = next;
  return {};
}

std::string Parser::finish() {
  auto& components = request_.layout.components;
  bool asked = current_.anything() || !components.empty();
  if (request_.remove && (asked || !request_.copyFrom.empty()))
    return "option -d is mutually exclusive with -c, -S, -i, -o, -p, -E and --copy";
  if (!request_.copyFrom.empty() && asked)
    return "can't specify --copy with -c, -S, -i, -o, -p or -E";
  if (current_.end || (components.empty() && asked))
    if (auto error = finishComponent(); !error.empty()) return error;
  if (auto error = striping::checkLayout(request_.layout); !error.empty())
    return "invalid layout: " + error;
  if (request_.paths.empty()) return "FILE must be specified";
  return {};
}

SetstripeRequest Parser::parse(int argc, char** argv) {
  OptionReader reader(argc, argv, kShortOptions, kLongOptions);
  for (int option; (option = reader.next()) != -1 && request_.error.empty();) {
    bool wrong = option == '?' || option == ':';
    if (option == kLongUnsupported)
      request_.error =
          "option '" + reader.word() + "' is not supported: a layout is set as a whole";
    else
      request_.error = wrong ? reader.complaint(option) : take(option, reader.argument());
    if (request_.help) return request_;
  }
  if (!request_.error.empty()) return request_;
  request_.paths.assign(argv + reader.firstPositional(), argv + argc);
  request_.error = finish();
  return request_;
}

}  // namespace

SetstripeRequest parseSetstripe(int argc, char** argv) {
  return Parser().parse(argc, argv);
}

}  // namespace trainfs::tfs
