// Result<T>: a value, or the errno that a POSIX caller is to see.
// What a caller can provoke is a Result; broken peers and bugs are kj exceptions (see docs/architecture.md).
#pragma once

#include <cerrno>
#include <cstdlib>
#include <utility>
#include <variant>

namespace trainfs {

// An errno value, never 0. Converts implicitly into any Result<T>.
class Errno {
 public:
  explicit constexpr Errno(int code) : code_(code) {}
  constexpr int code() const { return code_; }
  friend constexpr bool operator==(Errno, Errno) = default;

 private:
  int code_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}  // NOLINT: implicit by design
  Result(Errno error) : state_(error) {}         // NOLINT: implicit by design

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }

  // The value; the process ends if there is none (a bug of the caller, in release builds too).
  T& operator*() & { return *require(); }
  const T& operator*() const& { return *const_cast<Result*>(this)->require(); }
  T operator*() && { return std::move(*require()); }  // by value: `for (x : *f())` must not dangle
  T* operator->() { return require(); }
  const T* operator->() const { return const_cast<Result*>(this)->require(); }

  Errno error() const {
    auto* error = std::get_if<Errno>(&state_);
    if (error == nullptr) std::abort();
    return *error;
  }
  // 0 when there is a value.
  int errnoOrZero() const { return ok() ? 0 : error().code(); }

 private:
  T* require() {
    auto* value = std::get_if<T>(&state_);
    if (value == nullptr) std::abort();
    return value;
  }

  std::variant<T, Errno> state_;
};

// For operations that have nothing to say but success.
struct Done {
  friend constexpr bool operator==(Done, Done) = default;
};
using Status = Result<Done>;

}  // namespace trainfs
