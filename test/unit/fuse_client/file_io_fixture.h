// FileIo above an MDS client and a data client that answer when the test says so: one file of two
// stripes.
#pragma once

#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "fake_servers.h"
#include "fuse_client/file_io.h"

namespace trainfs::client::test {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

constexpr InodeId kFile{7};

struct FileFixture {
  Script script;
  FakeMds mds{script};
  FakeData data{script};
  Inodes inodes;
  Coherence coherence;
  std::vector<InodeId> modesForgotten;
  AppendTurns turns{mds, coherence};
  FileIo files{
      mds, data, inodes, coherence, turns, [this](InodeId inode, std::function<void()> done) {
        modesForgotten.push_back(inode);
        done();
      }};
  InodePtr inode = inodes.obtain(kFile);
  Losses::Mark handle = inode->losses.newMark();
  Layout layout;

  // Two stripes of 64 KiB.
  FileFixture() {
    coherence.allow(coherence.version());
    coherence.trustUntil(BootClock::time_point::max());
    layout.generation = 1;
    layout.components.push_back({.stripeBytes = kBlockBytes,
                                 .stripeCount = 2,
                                 .chains = {ChainId{0}, ChainId{1}},
                                 .exists = {false, false}});
    mds.node = {.attributes = {.inode = kFile, .mode = S_IFREG | 0644, .links = 1, .ctime = {1, 0}},
                .layout = nullptr};
    tell();
    inodes.take(*inode, mds.node, inodes.now());
  }
  // The MDS's answers from now on.
  void tell() { mds.node.layout = std::make_shared<const Layout>(layout); }

  void openToWrite() {
    files.open(inode, true, [](Status status) { REQUIRE(status.ok()); });
    REQUIRE(script.answer("open to write"));
  }
  void write(uint64_t offset, const std::string& text) {
    Result<size_t> written(Errno(EINPROGRESS));
    files.write(inode, offset, std::as_bytes(std::span(text)), false,
                [&](auto result) { written = result; });
    REQUIRE(script.answer("write"));
    REQUIRE(written.ok());
    REQUIRE(*written == text.size());
  }
  std::string read(uint64_t offset, size_t bytes) {
    std::string text(bytes, '?');
    Result<size_t> got(Errno(EINPROGRESS));
    files.read(inode, offset, std::as_writable_bytes(std::span(text)),
               [&](auto result) { got = result; });
    script.answer("read");
    REQUIRE(got.ok());
    text.resize(*got);
    return text;
  }
  const ReportOp& lastReport() { return std::get<ReportOp>(mds.executed.back()); }
};

}  // namespace trainfs::client::test
