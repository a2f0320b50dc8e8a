#include "mds/command_record.h"

#include <kj/debug.h>

#include <type_traits>

#include "striping/layout_record.h"
#include "trainfs/codec.h"

namespace trainfs::mds {
namespace {

constexpr uint8_t kCommandVersion = 5, kCommandVersionOldest = 5;

// What each operation is made of, in the order of the bytes; for encoding and decoding alike.
template <typename Codec>
struct Fields {
  Codec& codec;

  void operator()(auto& op) { fields(op); }

 private:
  // The parameter is const when encoding.
  template <typename Op, typename Given>
  static constexpr bool kIs = std::is_same_v<Op, std::remove_const_t<Given>>;

  template <typename Op>
  void fields(Op& op) {
    if constexpr (kIs<CreateOp, Op>)
      codec(op.parent, op.name, op.mode, op.umask, op.device, op.target, op.exclusive, op.writing,
            op.unnamed, op.linkable, op.newInode, op.layout);
    else if constexpr (kIs<LinkOp, Op>)
      codec(op.inode, op.parent, op.name);
    else if constexpr (kIs<UnlinkOp, Op> || kIs<RmdirOp, Op>)
      codec(op.parent, op.name, op.holders);
    else if constexpr (kIs<RenameOp, Op>)
      codec(op.parent, op.name, op.newParent, op.newName, op.noReplace, op.exchange, op.holders);
    else if constexpr (kIs<SetAttrOp, Op>)
      codec(op.inode, op.mask, op.mode, op.uid, op.gid, op.sizeBytes, op.atime, op.mtime, op.flags,
            op.keepBytes);
    else if constexpr (kIs<SetXattrOp, Op>)
      codec(op.inode, op.name, op.value, op.create, op.replace);
    else if constexpr (kIs<RemoveXattrOp, Op>)
      codec(op.inode, op.name);
    else if constexpr (kIs<SetLayoutOp, Op>)
      codec(op.inode, op.layout, op.create, op.replace);
    else if constexpr (kIs<ReportOp, Op>)
      codec(op.inode, op.sizeBytes, op.usedBytes, op.mtime, op.exists, op.stillWriting,
            op.killPrivileges, op.settings, op.overtaken);
    else if constexpr (kIs<OpenWriteOp, Op> || kIs<ReleaseOp, Op>)
      codec(op.inode);
    else if constexpr (kIs<InstantiateOp, Op>)
      codec(op.inode, op.component, op.chains);
    else if constexpr (kIs<OpenSessionOp, Op>)
      codec(op.clientName);
    else if constexpr (kIs<EndSessionOp, Op>)
      codec(op.session);
    else if constexpr (kIs<ReapedOp, Op>)
      codec(op.inode, op.generation);
    else if constexpr (kIs<RegisterOstOp, Op>)
      codec(op.index, op.uuid, op.host, op.ports, op.start, op.acceptedStart, op.olderCopy);
    else if constexpr (kIs<RegisterChangelogOp, Op>)
      codec(op.name);
    else if constexpr (kIs<DeregisterChangelogOp, Op>)
      codec(op.user);
    else if constexpr (kIs<ClearChangelogOp, Op>)
      codec(op.user, op.upTo);
    else if constexpr (kIs<BeginTruncationOp, Op>)
      fields(op.set), codec(op.slot, op.sequence);
    else if constexpr (kIs<EndTruncationOp, Op>)
      codec(op.inode, op.error);
    else
      static_assert(kIs<TrimChangelogOp, Op>, "an operation without its fields");
  }
};

class Encoder {
 public:
  void operator()(const auto&... values) { (put(values), ...); }
  std::string take() { return writer_.take(); }

 private:
  template <typename T>
    requires std::is_integral_v<T>
  void put(T number) {
    if constexpr (std::is_same_v<T, bool>)
      writer_.put(static_cast<uint8_t>(number));
    else
      writer_.put(number);
  }
  void put(const std::string& text) { writer_.putString(text); }
  void put(InodeId id) { writer_.put(id.value); }
  void put(SessionId id) { writer_.put(id.value); }
  void put(ChainId id) { writer_.put(id.value); }
  void put(Time time) { writer_.put(time.seconds).put(time.nanoseconds); }
  void put(const Layout& layout) { writer_.putString(striping::encodeLayout(layout)); }
  template <typename A, typename B>
  void put(const std::pair<A, B>& both) {
    put(both.first), put(both.second);
  }
  template <typename T>
  void put(const std::vector<T>& all) {
    writer_.put(static_cast<uint32_t>(all.size()));
    for (const auto& one : all) put(one);
  }

  Writer writer_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : reader_(bytes) {}
  void operator()(auto&... values) { (get(values), ...); }
  bool finished() const { return reader_.finished(); }

 private:
  template <typename T>
    requires std::is_integral_v<T>
  void get(T& number) {
    if constexpr (std::is_same_v<T, bool>)
      number = reader_.get<uint8_t>() != 0;
    else
      number = reader_.get<T>();
  }
  void get(std::string& text) { text = reader_.getString(kCommandBytesMax); }
  void get(InodeId& id) { id.value = reader_.get<uint64_t>(); }
  void get(SessionId& id) { id.value = reader_.get<uint64_t>(); }
  void get(ChainId& id) { id.value = reader_.get<uint32_t>(); }
  void get(Time& time) {
    time.seconds = reader_.get<int64_t>();
    time.nanoseconds = reader_.get<uint32_t>();
  }
  void get(Layout& layout) {
    auto decoded = striping::decodeLayout(reader_.getString(kCommandBytesMax));
    if (decoded)
      layout = *std::move(decoded);
    else
      reader_.fail();
  }
  template <typename A, typename B>
  void get(std::pair<A, B>& both) {
    get(both.first), get(both.second);
  }
  template <typename T>
  void get(std::vector<T>& all) {
    auto count = reader_.get<uint32_t>();
    for (uint32_t i = 0; i < count && reader_.ok(); ++i) get(all.emplace_back());
  }

  Reader reader_;
};

// An operation's number is its place in the variant.
template <size_t... kNumbers>
bool decodeOperation(uint8_t number, Decoder& decoder, Operation& op,
                     std::index_sequence<kNumbers...>) {
  Fields<Decoder> fields{decoder};
  return ((number == kNumbers && (fields(op.emplace<kNumbers>()), true)) || ...);
}

}  // namespace

std::string encodeCommand(const Command& command) {
  Encoder encoder;
  const auto& who = command.identity;
  encoder(kCommandVersion, static_cast<uint8_t>(command.op.index()), command.session, command.slot,
          command.sequence, who.uid, who.gid, who.groups, command.now);
  Fields<Encoder> fields{encoder};
  std::visit([&](const auto& op) { fields(op); }, command.op);
  return encoder.take();
}

Command decodeCommand(std::string_view bytes) {
  Command command;
  auto& who = command.identity;
  Decoder decoder(bytes);
  uint8_t version = 0, number = 0;
  decoder(version);
  KJ_REQUIRE(version <= kCommandVersion, "a command of a newer version than this program knows",
             version, kCommandVersion);
  decoder(number, command.session, command.slot, command.sequence, who.uid, who.gid, who.groups,
          command.now);
  bool known = decodeOperation(number, decoder, command.op,
                               std::make_index_sequence<std::variant_size_v<Operation>>());
  KJ_REQUIRE(version >= kCommandVersionOldest && known && decoder.finished(), "a damaged command",
             bytes.size(), number);
  return command;
}

}  // namespace trainfs::mds
