#include "sizes.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace trainfs::tfs {

bool parseBytes(const std::string& text, uint64_t& bytes) {
  if (text.empty() || !std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  char* end = nullptr;
  errno = 0;
  uint64_t whole = std::strtoull(text.c_str(), &end, 0);
  if (errno != 0) return false;
  double fraction = 0;
  if (*end == '.') {
    char* begin = end;
    fraction = std::strtod(begin, &end);
    if (end == begin || std::string_view(begin, end - begin).find_first_not_of(".0123456789") !=
                            std::string_view::npos)
      return false;
  }
  unsigned shift = 0;
  if (*end != '\0') {
    const char* units = "kmgtpe";
    const char* unit = std::strchr(units, std::tolower(static_cast<unsigned char>(*end)));
    if (unit == nullptr) return false;
    shift = 10 * static_cast<unsigned>(unit - units + 1);
    std::string_view rest(end + 1);
    if (!rest.empty() && rest != "iB" && rest != "ib" && rest != "B" && rest != "b") return false;
  }
  if (whole > (~uint64_t{0} >> shift)) return false;
  uint64_t more = static_cast<uint64_t>(fraction * static_cast<double>(uint64_t{1} << shift));
  bytes = whole << shift;
  return !__builtin_add_overflow(bytes, more, &bytes);
}

bool parseStripeSize(const std::string& text, uint64_t& bytes) {
  if (!parseBytes(text, bytes)) return false;
  if (bytes < 4096) bytes *= 1024;
  return true;
}

}  // namespace trainfs::tfs
