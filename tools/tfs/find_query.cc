#include "find_query.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace trainfs::tfs {
namespace {

class Parser {
 public:
  Parser(int argc, char** argv, const FindContext& context)
      : words_(argv + 1, argv + argc), context_(context) {}

  FindQuery parse() {
    while (at_ < words_.size() && query_.error.empty() && !query_.help) take(words_[at_++]);
    if (query_.error.empty() && !query_.help) finish();
    return std::move(query_);
  }

 private:
  void take(const std::string& word) {
    if (word == "!" || word == "-not") {
      negated_ = !negated_;
      negation_ = word;
      return;
    }
    bool isOption = word.size() > 1 && word[0] == '-';
    if (!isOption) return takePath(word);
    size_t begin = word[1] == '-' ? 2 : 1;
    size_t equals = word.find('=');
    std::string name = word.substr(begin, equals == word.npos ? word.npos : equals - begin);
    if (name == "empty") return add(emptiness());
    if (auto make = findTest(name)) {
      std::string value;
      if (!takeValue(word, equals, value)) return;
      Test made;
      if (!make(value, context_, made))
        return fail("invalid value '" + value + "' of '-" + name + "'" + hint(name));
      return add(std::move(made));
    }
    takeSetting(word, name, equals);
  }

  void takePath(const std::string& word) {
    if (word == "(" || word == ")" || word == ",") return fail("'" + word + "' is not supported");
    if (negated_ || !query_.tests.empty())
      return fail("paths must come before tests: '" + word + "'");
    query_.paths.push_back(word);
  }

  void takeSetting(const std::string& word, const std::string& name, size_t equals) {
    if (negated_)
      return fail("'" + negation_ + "' must stand before a test, not before '" + word + "'");
    if (name == "print" || name == "p" || name == "lazy" || name == "a" || name == "and") return;
    if (name == "print0" || name == "P" || name == "0") {
      query_.nul = true;
    } else if (name == "json") {
      query_.json = true;
    } else if (name == "help" || name == "h") {
      query_.help = true;
    } else if (name == "maxdepth" || name == "D" || name == "mindepth") {
      std::string value;
      Number depth = 0;
      if (!takeValue(word, equals, value)) return;
      if (!parseNumber(value, depth) || depth > ~0u) return fail("invalid depth '" + value + "'");
      (name == "mindepth" ? query_.depthMin : query_.depthMax) = static_cast<unsigned>(depth);
    } else {
      fail("unrecognized option '" + word + "'");
    }
  }

  bool takeValue(const std::string& word, size_t equals, std::string& value) {
    if (equals != word.npos) return value = word.substr(equals + 1), true;
    if (at_ == words_.size()) return fail("option '" + word + "' needs a value"), false;
    value = words_[at_++];
    return true;
  }

  static std::string hint(const std::string& name) {
    if (name == "newer" || name == "anewer" || name == "cnewer")
      return std::string(": ") + std::strerror(errno);
    if (name == "ost" || name == "obd" || name == "O")
      return ": an index or a name as 'tfs osts' shows, several with commas";
    return {};
  }

  void add(Test test) {
    if (negated_) {
      test = [positive = std::move(test)](const Candidate& file) {
        auto matched = positive(file);
        if (matched) *matched = !*matched;
        return matched;
      };
    }
    negated_ = false;
    query_.tests.push_back(std::move(test));
  }

  void finish() {
    if (query_.nul && query_.json) return fail("-print0 and --json exclude each other");
    if (negated_) return fail("'" + negation_ + "' must stand before a test");
    if (query_.depthMin > query_.depthMax) fail("-mindepth is greater than -maxdepth");
    if (query_.paths.empty()) query_.paths.push_back(".");
  }

  void fail(std::string error) { query_.error = std::move(error); }

  std::vector<std::string> words_;
  const FindContext& context_;
  FindQuery query_;
  size_t at_ = 0;
  bool negated_ = false;
  std::string negation_;
};

}  // namespace

FindQuery parseFind(int argc, char** argv, const FindContext& context) {
  return Parser(argc, argv, context).parse();
}

bool matches(const FindQuery& query, const Candidate& candidate) {
  return std::all_of(query.tests.begin(), query.tests.end(),
                     [&](const Test& test) { return test(candidate).value_or(false); });
}

}  // namespace trainfs::tfs
