#include "find_tests.h"

#include <dirent.h>
#include <fnmatch.h>
#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>

#include "sizes.h"

namespace trainfs::tfs {
namespace {

// Without a sign: in the unit that ends with the limit, as lfs has it (-size 1M: above 0, up to
// 1M).
bool compare(uint64_t value, char sign, uint64_t limit, uint64_t unit) {
  if (sign == '+') return value > limit;
  if (sign == '-') return value < limit;
  return value <= limit && limit - value < unit;
}

// ---- attributes ----

bool makeType(const std::string& value, const FindContext&, Test& test) {
  static const std::map<char, unsigned char> kTypes = {{'b', DT_BLK}, {'c', DT_CHR}, {'d', DT_DIR},
                                                       {'f', DT_REG}, {'l', DT_LNK}, {'p', DT_FIFO},
                                                       {'s', DT_SOCK}};
  if (value.size() != 1 || !kTypes.contains(value[0])) return false;
  test = [type = kTypes.at(value[0])](const Candidate& file) { return file.type == type; };
  return true;
}

template <int kFlags>
bool makeName(const std::string& value, const FindContext&, Test& test) {
  test = [value](const Candidate& file) {
    return fnmatch(value.c_str(), file.name.c_str(), kFlags) == 0;
  };
  return true;
}

Test onAttributes(std::function<bool(const struct stat&)> test) {
  return [test](const Candidate& file) -> std::optional<bool> {
    const struct stat* attributes = file.attributes();
    if (attributes == nullptr) return std::nullopt;
    return test(*attributes);
  };
}

bool makeSize(const std::string& value, const FindContext&, Test& test) {
  auto [sign, text] = splitSign(value);
  uint64_t scale = 1;  // c and b as find has them; b alone is blocks, not bytes
  if (text.ends_with("c") || text.ends_with("b")) {
    scale = text.back() == 'b' ? 512 : 1;
    text.pop_back();
  }
  uint64_t limit = 0, unit = 1;
  if (!parseBytes(text, limit) || limit > ~uint64_t{0} / scale) return false;
  size_t letter = text.find_first_of("kKmMgGtTpPeE");
  if (text.rfind("0x", 0) != 0 && letter != text.npos) parseBytes("1" + text.substr(letter), unit);
  test = onAttributes([=, sign = sign](const struct stat& file) {
    return compare(static_cast<uint64_t>(file.st_size), sign, limit * scale, unit * scale);
  });
  return true;
}

// An age in days, or with a unit: s m h d w y.
template <timespec stat::* kTime>
bool makeAge(const std::string& value, const FindContext& context, Test& test) {
  static const std::map<char, uint64_t> kUnits = {
      {'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7 * 86400}, {'y', 365 * 86400}};
  auto [sign, text] = splitSign(value);
  uint64_t unit = 86400;
  if (!text.empty() && kUnits.contains(text.back())) {
    unit = kUnits.at(text.back());
    text.pop_back();
  }
  Number count = 0;
  if (!parseNumber(text, count) || count > ~uint32_t{0}) return false;
  auto limit = static_cast<int64_t>(count * unit), width = static_cast<int64_t>(unit);
  test = onAttributes([=, sign = sign, now = context.now](const struct stat& file) {
    int64_t age = now - (file.*kTime).tv_sec;
    if (sign == '+') return age > limit;
    if (sign == '-') return age < limit;
    return age >= limit && age < limit + width;
  });
  return true;
}

template <timespec stat::* kTime>
bool makeNewer(const std::string& value, const FindContext&, Test& test) {
  struct stat than{};
  if (stat(value.c_str(), &than) != 0) return false;
  test = onAttributes([mark = than.st_mtim](const struct stat& file) {
    auto& time = file.*kTime;
    return time.tv_sec != mark.tv_sec ? time.tv_sec > mark.tv_sec : time.tv_nsec > mark.tv_nsec;
  });
  return true;
}

bool makeUid(const std::string& value, const FindContext&, Test& test) {
  Number id = 0;
  const passwd* entry = getpwnam(value.c_str());
  if (entry != nullptr) id = entry->pw_uid;
  if (entry == nullptr && !parseNumber(value, id)) return false;
  test = onAttributes([id](const struct stat& file) { return file.st_uid == id; });
  return true;
}

bool makeGid(const std::string& value, const FindContext&, Test& test) {
  Number id = 0;
  const group* entry = getgrnam(value.c_str());
  if (entry != nullptr) id = entry->gr_gid;
  if (entry == nullptr && !parseNumber(value, id)) return false;
  test = onAttributes([id](const struct stat& file) { return file.st_gid == id; });
  return true;
}

bool makeLinks(const std::string& value, const FindContext&, Test& test) {
  auto [sign, text] = splitSign(value);
  Number limit = 0;
  if (!parseNumber(text, limit)) return false;
  test = onAttributes(
      [=, sign = sign](const struct stat& file) { return compare(file.st_nlink, sign, limit, 1); });
  return true;
}

bool makePerm(const std::string& value, const FindContext&, Test& test) {
  char kind = value.empty() ? '=' : value[0];
  std::string digits = kind == '-' || kind == '/' ? value.substr(1) : value;
  char* end = nullptr;
  unsigned long mode = std::strtoul(digits.c_str(), &end, 8);
  if (digits.empty() || digits[0] == '-' || *end != '\0' || mode > 07777) return false;
  test = onAttributes([=](const struct stat& file) {
    unsigned long bits = file.st_mode & 07777;
    if (kind == '-') return (bits & mode) == mode;
    if (kind == '/') return mode == 0 || (bits & mode) != 0;
    return bits == mode;
  });
  return true;
}

// ---- layouts ----

Test onLayout(std::function<bool(const Layout&)> test) {
  return [test](const Candidate& file) -> std::optional<bool> {
    if (file.type != DT_REG && file.type != DT_DIR) return false;
    const Layout* layout = file.layout();
    if (layout == nullptr) return std::nullopt;
    return !layout->components.empty() && test(*layout);
  };
}

// The component that counts: as in lfs the last that has objects, else the first.
const Component& chief(const Layout& layout) {
  for (auto component = layout.components.rbegin(); component != layout.components.rend();
       ++component)
    if (component->instantiated()) return *component;
  return layout.components.front();
}

bool makeOst(const std::string& value, const FindContext& context, Test& test) {
  std::vector<uint32_t> wanted;
  for (size_t begin = 0; begin <= value.size();) {
    size_t comma = std::min(value.find(',', begin), value.size());
    std::string item = value.substr(begin, comma - begin);
    begin = comma + 1;
    Number index = 0;
    if (parseNumber(item, index) && index < kSingleOstChains) {
      wanted.push_back(static_cast<uint32_t>(index));
    } else if (auto named = context.ostIndex(item)) {
      wanted.push_back(*named);
    } else {
      return false;
    }
  }
  test = onLayout([wanted](const Layout& layout) {
    for (const Component& component : layout.components)
      for (ChainId chain : component.chains)
        if (std::find(wanted.begin(), wanted.end(), chain.value) != wanted.end()) return true;
    return false;
  });
  return true;
}

bool makeStripeCount(const std::string& value, const FindContext&, Test& test) {
  auto [sign, text] = splitSign(value);
  Number limit = 0;
  if (value == "-1") {
    sign = '=';
    limit = kStripeCountAll;
  } else if (!parseNumber(text, limit)) {
    return false;
  }
  test = onLayout([=, sign = sign](const Layout& layout) {
    return compare(chief(layout).stripeCount, sign, limit, 1);
  });
  return true;
}

bool makeStripeSize(const std::string& value, const FindContext&, Test& test) {
  auto [sign, text] = splitSign(value);
  uint64_t limit = 0;
  if (!parseBytes(text, limit)) return false;
  test = onLayout([=, sign = sign](const Layout& layout) {
    return compare(chief(layout).stripeBytes, sign, limit, 1);
  });
  return true;
}

bool makePool(const std::string& value, const FindContext&, Test& test) {
  test = onLayout([value](const Layout& layout) {
    return std::any_of(layout.components.begin(), layout.components.end(),
                       [&](const Component& component) { return component.pool == value; });
  });
  return true;
}

const std::map<std::string, MakeTest> kTests = {
    {"type", makeType},
    {"t", makeType},
    {"name", makeName<0>},
    {"n", makeName<0>},
    {"iname", makeName<FNM_CASEFOLD>},
    {"size", makeSize},
    {"s", makeSize},
    {"mtime", makeAge<&stat::st_mtim>},
    {"M", makeAge<&stat::st_mtim>},
    {"atime", makeAge<&stat::st_atim>},
    {"A", makeAge<&stat::st_atim>},
    {"ctime", makeAge<&stat::st_ctim>},
    {"C", makeAge<&stat::st_ctim>},
    {"newer", makeNewer<&stat::st_mtim>},
    {"anewer", makeNewer<&stat::st_atim>},
    {"cnewer", makeNewer<&stat::st_ctim>},
    {"uid", makeUid},
    {"user", makeUid},
    {"u", makeUid},
    {"U", makeUid},
    {"gid", makeGid},
    {"group", makeGid},
    {"g", makeGid},
    {"G", makeGid},
    {"links", makeLinks},
    {"perm", makePerm},
    {"ost", makeOst},
    {"obd", makeOst},
    {"O", makeOst},
    {"stripe-count", makeStripeCount},
    {"c", makeStripeCount},
    {"stripe-size", makeStripeSize},
    {"S", makeStripeSize},
    {"pool", makePool},
};

}  // namespace

Signed splitSign(const std::string& text) {
  bool sign = !text.empty() && (text[0] == '+' || text[0] == '-');
  return sign ? Signed{text[0], text.substr(1)} : Signed{'=', text};
}

bool parseNumber(const std::string& text, Number& number) {
  char* end = nullptr;
  errno = 0;
  number = std::strtoull(text.c_str(), &end, 0);
  return !text.empty() && text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

Test emptiness() {
  return [](const Candidate& file) -> std::optional<bool> {
    if (file.type == DT_DIR) return file.empty();
    if (file.type != DT_REG) return false;
    const struct stat* attributes = file.attributes();
    if (attributes == nullptr) return std::nullopt;
    return attributes->st_size == 0;
  };
}

MakeTest findTest(const std::string& name) {
  auto found = kTests.find(name);
  return found == kTests.end() ? nullptr : found->second;
}

}  // namespace trainfs::tfs
