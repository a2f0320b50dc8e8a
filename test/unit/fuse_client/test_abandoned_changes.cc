// Order behind changes whose callers were killed.
#include <catch2/catch_test_macros.hpp>
#include <string>

#include "fuse_client/abandoned_changes.h"

using trainfs::client::AbandonedChanges;

TEST_CASE("what comes after abandoned changes waits until the last of them is settled",
          "[client]") {
  AbandonedChanges abandoned;
  std::string ran;
  abandoned.afterAll([&] { ran += 'a'; });
  CHECK(ran == "a");
  abandoned.add();
  abandoned.add();
  abandoned.afterAll([&] { ran += 'b'; });
  abandoned.settled();
  abandoned.afterAll([&] { ran += 'c'; });
  CHECK(ran == "a");
  abandoned.settled();
  CHECK(ran == "abc");
  abandoned.afterAll([&] { ran += 'd'; });
  CHECK(ran == "abcd");
}

TEST_CASE("what waited may abandon changes of its own", "[client]") {
  AbandonedChanges abandoned;
  bool ran = false;
  abandoned.add();
  abandoned.afterAll([&] {
    abandoned.add();
    abandoned.afterAll([&] { ran = true; });
  });
  abandoned.settled();
  CHECK_FALSE(ran);
  abandoned.settled();
  CHECK(ran);
}
