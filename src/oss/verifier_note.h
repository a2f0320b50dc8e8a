// Says, outside of an OST's disk, which verifier still stands for what this machine's memory holds
// of it. A file system that fails cannot keep the news that it lost writes, and mounted again it
// looks as it did before; so its word counts only together with this note, which is taken back when
// writes are lost. Without a note nothing is trusted.
#pragma once

#include <cstdint>
#include <string>

namespace trainfs::oss {

class VerifierNote {
 public:
  // In memory, so that no disk is asked.
  static constexpr const char* kDirectory = "/run/trainfs";

  explicit VerifierNote(std::string path) : path_(std::move(path)) {}
  uint64_t read() const;  // 0: there is none
  void write(uint64_t verifier) const;
  // Any thread.
  void remove() const;

 private:
  const std::string path_;
};

}  // namespace trainfs::oss
