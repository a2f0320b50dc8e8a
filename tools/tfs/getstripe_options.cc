#include "getstripe_options.h"

#include <cstdlib>

#include "command.h"
#include "sizes.h"

namespace trainfs::tfs {
namespace {

constexpr option kLongOptions[] = {
    {"stripe-count", no_argument, nullptr, 'c'},
    {"stripe_count", no_argument, nullptr, 'c'},
    {"stripe-size", no_argument, nullptr, 'S'},
    {"stripe_size", no_argument, nullptr, 'S'},
    {"stripe-index", no_argument, nullptr, 'i'},
    {"stripe_index", no_argument, nullptr, 'i'},
    {"pool", no_argument, nullptr, 'p'},
    {"layout", no_argument, nullptr, 'L'},
    {"generation", no_argument, nullptr, 'g'},
    {"fid", no_argument, nullptr, 'F'},
    {"mdt", no_argument, nullptr, 'm'},
    {"mdt-index", no_argument, nullptr, 'm'},
    {"mdt_index", no_argument, nullptr, 'm'},
    {"mirror-count", no_argument, nullptr, 'N'},
    {"component-count", no_argument, nullptr, kLongComponentCount},
    {"comp-count", no_argument, nullptr, kLongComponentCount},
    {"component-id", optional_argument, nullptr, 'I'},
    {"comp-id", optional_argument, nullptr, 'I'},
    {"component-flags", optional_argument, nullptr, kLongComponentFlags},
    {"comp-flags", optional_argument, nullptr, kLongComponentFlags},
    {"component-start", optional_argument, nullptr, kLongComponentStart},
    {"comp-start", optional_argument, nullptr, kLongComponentStart},
    {"component-end", optional_argument, nullptr, 'E'},
    {"comp-end", optional_argument, nullptr, 'E'},
    {"ost", required_argument, nullptr, 'O'},
    {"obd", required_argument, nullptr, 'O'},
    {"recursive", no_argument, nullptr, 'r'},
    {"directory", no_argument, nullptr, 'd'},
    {"default", no_argument, nullptr, 'D'},
    {"raw", no_argument, nullptr, 'R'},
    {"quiet", no_argument, nullptr, 'q'},
    {"verbose", no_argument, nullptr, 'v'},
    {"yaml", no_argument, nullptr, 'y'},
    {"json", no_argument, nullptr, kLongJson},
    {"hex-idx", no_argument, nullptr, kLongHexIndex},
    {"no-follow", no_argument, nullptr, kLongNoFollow},
    {"help", no_argument, nullptr, kLongHelp},
    {nullptr, 0, nullptr, 0}};
constexpr const char* kShortOptions = ":cdDE::FghiI::LmNO:pqrRSvy";

// Options that ask for one field each.
uint32_t fieldOf(int option) {
  switch (option) {
    case 'c':
      return kFieldStripeCount;
    case 'S':
      return kFieldStripeSize;
    case 'i':
      return kFieldStripeOffset;
    case 'p':
      return kFieldPool;
    case 'L':
      return kFieldPattern;
    case 'g':
      return kFieldGeneration;
    case 'F':
      return kFieldFid;
    case 'N':
      return kFieldMirrorCount;
    case 'I':
      return kFieldComponentId;
    case 'E':
      return kFieldComponentEnd;
    case kLongComponentCount:
      return kFieldComponentCount;
    case kLongComponentFlags:
      return kFieldComponentFlags;
    case kLongComponentStart:
      return kFieldComponentStart;
    default:
      return 0;
  }
}

std::string takeBound(const std::string& value, std::optional<Bound>& bound) {
  Bound parsed;
  std::string number = value;
  if (value[0] == '+' || value[0] == '-') {
    parsed.sign = value[0];
    number.erase(0, 1);
  }
  bool eof = value == "-1" || number == "eof" || number == "EOF";
  if (eof)
    parsed = {value == "-1" ? '=' : parsed.sign, kExtentEof};
  else if (!parseStripeSize(number, parsed.bytes))
    return "bad component offset '" + value + "'";
  bound = parsed;
  return {};
}

// "3", "OST0003", "trainfs-OST0003" or "trainfs-OST0003_UUID".
std::string takeOst(const std::string& value, std::optional<uint32_t>& ost) {
  size_t name = value.find("OST");
  bool named = name != value.npos;
  std::string digits = named ? value.substr(name + 3, value.find("_UUID") - (name + 3)) : value;
  char* end = nullptr;
  unsigned long index = std::strtoul(digits.c_str(), &end, named ? 16 : 0);
  if (digits.empty() || digits[0] == '-' || *end != '\0' || index >= kSingleOstChains)
    return "unknown OST '" + value + "'";
  ost = static_cast<uint32_t>(index);
  return {};
}

// Options whose attached argument chooses components; without one they ask for the field.
std::string takeFilter(int option, const std::string& value, Selection& selection) {
  if (option == 'E') return takeBound(value, selection.componentEnd);
  if (option == kLongComponentStart) return takeBound(value, selection.componentStart);
  if (option == kLongComponentFlags) {
    if (value != "init" && value != "^init")
      return "bad component flags '" + value + "': there are 'init' and '^init'";
    selection.initialized = value == "init";
    return {};
  }
  char* end = nullptr;
  unsigned long id = std::strtoul(value.c_str(), &end, 0);
  if (*end != '\0' || id == 0 || id > kComponentsMax) return "bad component id '" + value + "'";
  selection.componentId = static_cast<uint32_t>(id);
  return {};
}

struct Modes {
  bool recursive = false, directory = false, quiet = false;
};

std::string take(int option, const OptionReader& reader, GetstripeRequest& request, Modes& modes) {
  Selection& selection = request.selection;
  bool filters = option == 'E' || option == 'I' || option == kLongComponentFlags ||
                 option == kLongComponentStart;
  if (filters && reader.hasArgument()) return takeFilter(option, reader.argument(), selection);
  if (uint32_t field = fieldOf(option); field != 0) return selection.fields |= field, "";
  switch (option) {
    case 'O':
      return takeOst(reader.argument(), selection.ost);
    case 'm':
      request.mdtIndex = true;
      return {};
    case 'r':
      modes.recursive = true;
      return {};
    case 'd':
    case 'D':
      modes.directory = true;
      return {};
    case 'R':
      selection.raw = true;
      return {};
    case 'q':
      modes.quiet = true;
      return {};
    case 'v':
      selection.verbose = true;
      return {};
    case 'y':
      selection.yaml = true;
      return {};
    case kLongJson:
      request.json = true;
      return {};
    case kLongHexIndex:
      selection.hexIndex = true;
      return {};
    case kLongNoFollow:
      request.followSymlinks = false;
      return {};
    default:
      request.help = true;
      return {};
  }
}

// As in lfs: a single field is asked of the path itself, everything of what is in a directory.
void settle(GetstripeRequest& request, const Modes& modes) {
  Selection& selection = request.selection;
  bool single = selection.fields != 0 || request.mdtIndex;
  if (selection.verbose) {
    selection.fields = kFieldsDefault;
    single = false;
  } else if (selection.fields == 0) {
    selection.fields = kFieldsDefault;
  }
  if (modes.quiet) selection.fields = kFieldObjects;
  request.depthMax = modes.recursive ? -1 : (single || modes.directory) ? 0 : 1;
  selection.showPath = request.depthMax != 0;
}

}  // namespace

GetstripeRequest parseGetstripe(int argc, char** argv) {
  GetstripeRequest request;
  Modes modes;
  OptionReader reader(argc, argv, kShortOptions, kLongOptions);
  for (int option; (option = reader.next()) != -1 && request.error.empty();) {
    bool wrong = option == '?' || option == ':';
    request.error = wrong ? reader.complaint(option) : take(option, reader, request, modes);
    if (request.help) return request;
  }
  request.paths.assign(argv + reader.firstPositional(), argv + argc);
  if (request.error.empty() && request.paths.empty()) request.error = "no filename|pathname";
  settle(request, modes);
  return request;
}

}  // namespace trainfs::tfs
