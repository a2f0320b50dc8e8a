// What a segment of the MDT's log holds: heads, records, commands: a kj exception that says what is
// damaged, or values that are written and read back the same; records lie within the segment.
#include <kj/exception.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <variant>

#include "mds/command_record.h"
#include "mds/log_record.h"
#include "refusal.h"

using namespace trainfs;
using namespace trainfs::mds;
using fuzz::require;

namespace {

constexpr uint64_t kSeed = 7;

// One of each operation.
std::vector<std::string> someCommands() {
  std::vector<Command> commands;
  auto add = [&](Operation op) {
    commands.push_back({.session = {2},
                        .slot = 3,
                        .sequence = 9,
                        .identity = {7, 8, {9}},
                        .now = {5, 6},
                        .op = op});
  };
  Layout layout{.generation = 1, .components = {{.stripeCount = 2, .chains = {{0}, {1}}}}};
  add(CreateOp{.parent = {1}, .name = "file", .mode = 0100644, .newInode = {5}, .layout = layout});
  add(LinkOp{{5}, {1}, "link"});
  add(UnlinkOp{.parent = {1}, .name = "file", .holders = {{{5}, {2}}}});
  add(RmdirOp{.parent = {1}, .name = "directory"});
  add(RenameOp{.parent = {1}, .name = "a", .newParent = {1}, .newName = "b"});
  add(SetAttrOp{.inode = {5}, .mask = 1, .mode = 0600});
  add(SetXattrOp{.inode = {5}, .name = "user.x", .value = "value"});
  add(RemoveXattrOp{{5}, "user.x"});
  add(SetLayoutOp{{5}, layout});
  add(ReportOp{.inode = {5}, .sizeBytes = 9, .exists = {{0, 1}}});
  add(InstantiateOp{{5}, 0, {{1}, {2}}});
  add(OpenSessionOp{"host:/mnt"});
  add(RegisterOstOp{.index = 1, .uuid = "u", .host = "oss1", .ports = {7180}, .start = 5});
  add(OpenWriteOp{{5}});
  add(ReleaseOp{{5}});
  add(EndSessionOp{{2}});
  add(ReapedOp{{5}, 1});
  add(RegisterChangelogOp{"indexer"});
  add(DeregisterChangelogOp{1});
  add(ClearChangelogOp{1, 9});
  add(TrimChangelogOp{});
  add(BeginTruncationOp{{.inode = {5}, .mask = kSetSize | kCutObjects}, 3, 9});
  add(EndTruncationOp{{5}, 5});
  std::set<size_t> kinds;
  for (auto& command : commands) kinds.insert(command.op.index());
  require(kinds.size() == std::variant_size_v<Operation>);
  std::vector<std::string> encoded;
  for (auto& command : commands) encoded.push_back(encodeCommand(command));
  return encoded;
}

}  // namespace

// The first byte says what the rest is.
std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> seeds;
  LogRecord record{.firstIndex = 1, .commands = {}};
  auto commands = someCommands();
  for (auto& command : commands) {
    seeds.push_back('\0' + command);
    record.commands.push_back(command);
  }
  std::string one = encodeLogRecord({.firstIndex = 1, .commands = {commands[0]}}, kSeed);
  seeds.push_back('\1' + one +
                  encodeLogRecord({.firstIndex = 2, .commands = {commands[1]}}, kSeed));
  seeds.push_back('\1' + encodeLogRecord(record, kSeed));
  seeds.push_back('\3' + seeds.back().substr(1));
  seeds.push_back('\2' + encodeSegmentHead({.sequence = 4, .seed = kSeed}));
  return seeds;
}

namespace {

// Makes the sums of records fit, to reach what they guard; their form is in src/mds/log_record.cc.
void seal(std::span<char> records) {
  constexpr size_t kHeadBytes = 32, kSumOffset = 24;
  while (records.size() >= kHeadBytes) {
    uint32_t bytes;
    std::memcpy(&bytes, records.data() + 4, sizeof bytes);
    if (bytes > records.size() - kHeadBytes) return;
    uint64_t sum = XXH3_64bits_withSeed(records.data(), kSumOffset, kSeed);
    sum = XXH3_64bits_withSeed(records.data() + kHeadBytes, bytes, sum);
    std::memcpy(records.data() + kSumOffset, &sum, sizeof sum);
    records = records.subspan(std::min(records.size(), logRecordBytes(0, bytes)));
  }
}

void readSegment(std::string_view records, bool sealed) {
  std::string segment(kSegmentHeadBytes, '\0');
  segment.append(records);
  if (sealed) seal(std::span(segment).subspan(kSegmentHeadBytes));
  LogRecordReader reader(segment, kSeed);
  size_t commandBytes = 0;
  while (auto record = reader.next()) {
    for (auto command : record->commands) {
      require(command.data() >= segment.data());
      require(command.data() + command.size() <= segment.data() + segment.size());
      commandBytes += command.size();
    }
    require(commandBytes <= segment.size());
    if (auto at = reader.skippedAt()) require(*at < segment.size());
  }
}

void decodeAs(uint8_t kind, std::string_view bytes) {
  if (kind == 0) {
    auto once = encodeCommand(decodeCommand(bytes));
    require(encodeCommand(decodeCommand(once)) == once);
  } else if (kind == 1 || kind == 3) {
    readSegment(bytes, kind == 3);
  } else if (auto head = decodeSegmentHead(bytes, "segment")) {
    auto again = decodeSegmentHead(encodeSegmentHead(*head), "segment");
    require(again && again->sequence == head->sequence && again->seed == head->seed);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  fuzz::mayRefuse([&] { decodeAs(data[0], fuzz::text(data + 1, size - 1)); });
  return 0;
}
