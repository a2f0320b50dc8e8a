#include "mds/records.h"

#include <kj/debug.h>
#include <sys/stat.h>

#include "mds/keys.h"
#include "striping/layout_record.h"
#include "trainfs/codec.h"

namespace trainfs::mds {
namespace {

constexpr uint8_t kInodeVersion = 4, kInodeVersionOldest = 4;
constexpr uint8_t kSlotVersion = 1;
constexpr uint8_t kSessionVersion = 1;
constexpr uint8_t kOstVersion = 2, kOstVersionOldest = 2;

constexpr size_t kRecordTextBytesMax = 256 * kKiB;  // a layout of kStripesMax stripes needs 32 KiB

void requireVersion(Reader& reader, uint8_t known, const char* what, uint64_t id,
                    uint8_t oldest = 1) {
  auto version = reader.get<uint8_t>();
  KJ_REQUIRE(version <= known, "record of a newer version than this program knows", what, id,
             version, known);
  KJ_REQUIRE(version >= oldest, "damaged record: no version that there is", what, id, version);
}

void putTime(Writer& writer, Time time) {
  writer.put(time.seconds).put(time.nanoseconds);
}

Time getTime(Reader& reader) {
  auto seconds = reader.get<int64_t>();
  return {seconds, reader.get<uint32_t>()};
}

}  // namespace

bool InodeRecord::isDirectory() const {
  return S_ISDIR(attributes.mode);
}
bool InodeRecord::isRegular() const {
  return S_ISREG(attributes.mode);
}

std::string encodeInode(const InodeRecord& record) {
  const auto& a = record.attributes;
  Writer writer;
  writer.put(kInodeVersion).put(a.mode).put(a.uid).put(a.gid).put(a.links);
  writer.put(a.sizeBytes).put(a.usedBytes).put(a.device).put(a.flags);
  for (Time time : {a.atime, a.mtime, a.ctime, a.btime}) putTime(writer, time);
  writer.put(a.settings).put(a.acls).put(static_cast<uint8_t>(record.linkable));
  writer.put(record.parent.value).put(record.place).put(record.hashSeed);
  writer.putString(record.target).putString(record.layout);
  return writer.take();
}

InodeRecord decodeInode(InodeId inode, std::string_view bytes) {
  InodeRecord record;
  auto& a = record.attributes;
  a.inode = inode;
  Reader reader(bytes);
  requireVersion(reader, kInodeVersion, "inode", inode.value, kInodeVersionOldest);
  a.mode = reader.get<uint32_t>();
  a.uid = reader.get<uint32_t>();
  a.gid = reader.get<uint32_t>();
  a.links = reader.get<uint32_t>();
  a.sizeBytes = reader.get<uint64_t>();
  a.usedBytes = reader.get<uint64_t>();
  a.device = reader.get<uint64_t>();
  a.flags = reader.get<uint32_t>();
  for (Time* time : {&a.atime, &a.mtime, &a.ctime, &a.btime}) *time = getTime(reader);
  a.settings = reader.get<uint64_t>();
  a.acls = reader.get<uint8_t>();
  auto linkable = reader.get<uint8_t>();
  record.linkable = linkable == 1;
  record.parent = {reader.get<uint64_t>()};
  record.place = reader.get<uint64_t>();
  record.hashSeed = reader.get<uint64_t>();
  record.target = reader.getString(kSymlinkBytesMax);
  record.layout = reader.getString(kRecordTextBytesMax);
  KJ_REQUIRE(reader.finished() && linkable <= 1, "damaged inode record", inode.value, bytes.size());
  return record;
}

Layout decodeLayoutOf(const InodeRecord& record) {
  auto layout = striping::decodeLayout(record.layout);
  KJ_REQUIRE(layout.ok(), "damaged layout record, or of a newer version",
             record.attributes.inode.value, record.layout.size());
  return *std::move(layout);
}

std::string encodeEntry(const EntryRecord& entry) {
  return Writer().put(entry.inode.value).put(entry.mdt).put(entry.type).take();
}

EntryRecord decodeEntry(std::string_view bytes) {
  Reader reader(bytes);
  EntryRecord entry;
  entry.inode = {reader.get<uint64_t>()};
  entry.mdt = reader.get<uint16_t>();
  entry.type = reader.get<uint8_t>();
  KJ_REQUIRE(reader.finished(), "damaged directory entry", bytes.size());
  return entry;
}

std::string encodeSlot(const SlotRecord& slot) {
  const auto& outcome = slot.outcome;
  Writer writer;
  writer.put(kSlotVersion).put(slot.sequence).put(static_cast<uint16_t>(outcome.error));
  writer.put(outcome.inode.value).put(static_cast<uint8_t>(outcome.existed)).put(outcome.value);
  return writer.take();
}

SlotRecord decodeSlot(std::string_view bytes) {
  Reader reader(bytes);
  requireVersion(reader, kSlotVersion, "slot", 0);
  SlotRecord slot;
  slot.sequence = reader.get<uint64_t>();
  slot.outcome.error = reader.get<uint16_t>();
  slot.outcome.inode = {reader.get<uint64_t>()};
  slot.outcome.existed = reader.get<uint8_t>() != 0;
  slot.outcome.value = reader.get<uint64_t>();
  KJ_REQUIRE(reader.finished(), "damaged slot record", bytes.size());
  return slot;
}

std::string encodeSession(const SessionRecord& session) {
  return Writer().put(kSessionVersion).put(session.epoch).putString(session.clientName).take();
}

SessionRecord decodeSession(SessionId id, std::string_view bytes) {
  Reader reader(bytes);
  requireVersion(reader, kSessionVersion, "session", id.value);
  SessionRecord session{.id = id, .epoch = reader.get<uint32_t>(), .clientName = {}};
  session.clientName = reader.getString(kClientNameBytesMax);
  KJ_REQUIRE(reader.finished(), "damaged session record", id.value, bytes.size());
  return session;
}

std::string encodeOst(const OstRecord& ost) {
  Writer writer;
  writer.put(kOstVersion).put(ost.index).put(ost.chainVersion).put(ost.start);
  writer.putString(ost.uuid).putString(ost.host);
  writer.put(static_cast<uint16_t>(ost.ports.size()));
  for (uint16_t port : ost.ports) writer.put(port);
  return writer.take();
}

OstRecord decodeOst(std::string_view bytes) {
  Reader reader(bytes);
  requireVersion(reader, kOstVersion, "OST", 0, kOstVersionOldest);
  OstRecord ost;
  ost.index = reader.get<uint32_t>();
  ost.chainVersion = reader.get<uint32_t>();
  ost.start = reader.get<uint64_t>();
  ost.uuid = reader.getString(kOstTextBytesMax);
  ost.host = reader.getString(kOstTextBytesMax);
  auto ports = reader.get<uint16_t>();
  KJ_REQUIRE(ports <= kOstPortsMax, "damaged OST record: too many ports", ost.index, ports);
  for (uint16_t i = 0; i < ports; i++) ost.ports.push_back(reader.get<uint16_t>());
  KJ_REQUIRE(reader.finished(), "damaged OST record", ost.index, bytes.size());
  return ost;
}

std::string encodeTime(Time time) {
  Writer writer;
  putTime(writer, time);
  return writer.take();
}

Time decodeTime(std::string_view bytes) {
  Reader reader(bytes);
  auto time = getTime(reader);
  KJ_REQUIRE(reader.finished(), "damaged time", bytes.size());
  return time;
}

std::string encodeNumber(uint64_t number) {
  return Writer().put(number).take();
}

uint64_t decodeNumber(std::string_view key, std::string_view bytes) {
  Reader reader(bytes);
  auto number = reader.get<uint64_t>();
  KJ_REQUIRE(reader.finished(), "damaged number", std::string(key), bytes.size());
  return number;
}

void requireFormat(const View& view, std::string_view where) {
  auto refuse = [&](const std::string& why) {
    auto text = kj::heapString(std::string(where) + ": " + why);
    kj::throwFatalException(
        kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__, kj::mv(text)));
  };
  auto bytes = view.get(kFormatVersionKey);
  if (!bytes) refuse("not formatted as a metadata target; use mkfs.trainfs");
  auto version = decodeNumber(kFormatVersionKey, *bytes);
  auto versions = "version " + std::to_string(version) + ", this program reads " +
                  std::to_string(kFormatVersionOldest) + " to " + std::to_string(kFormatVersion);
  if (version == 0) refuse("damaged metadata target: format " + versions);
  if (version > kFormatVersion) refuse("the metadata target has a newer format: " + versions);
  if (version < kFormatVersionOldest)
    refuse("the metadata target was made by an earlier trainfs: format " + versions +
           "; copy its files with that one, and make the target anew with mkfs.trainfs");
}

}  // namespace trainfs::mds
