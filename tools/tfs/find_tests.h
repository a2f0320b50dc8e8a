// The tests of `tfs find` on one file after the other, each made from its value on the command
// line. Pure, but for the names of users and groups and the times of files that a value refers to.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "trainfs/types.h"

namespace trainfs::tfs {

// A file that is looked at. What costs a question is asked only if a test needs it; nothing: it
// cannot be told (the walk has complained).
struct Candidate {
  std::string name;
  unsigned char type = 0;  // DT_*
  std::function<const struct stat*()> attributes;
  std::function<const Layout*()> layout;       // without components: none of its own
  std::function<std::optional<bool>()> empty;  // a directory
};

// Nothing: what the test needs cannot be told. Such a file matches neither a test nor its negation.
using Test = std::function<std::optional<bool>(const Candidate&)>;

struct FindContext {
  time_t now = 0;
  // The index of an OST of that name (trainfs-OST0001, with or without _UUID).
  std::function<std::optional<uint32_t>(const std::string&)> ostIndex;
};

// Makes the test for a value; false: the value is wrong.
using MakeTest = bool (*)(const std::string& value, const FindContext& context, Test& test);
// Of an option, named without its dashes; null: there is no such test.
MakeTest findTest(const std::string& name);
Test emptiness();  // the one without a value

// "+3", "-3", "3": sign '+', '-' or '='; what follows.
struct Signed {
  char sign = '=';
  std::string text;
};
Signed splitSign(const std::string& text);

// A number without a sign, decimal, octal or hexadecimal.
using Number = unsigned long long;
bool parseNumber(const std::string& text, Number& number);

}  // namespace trainfs::tfs
