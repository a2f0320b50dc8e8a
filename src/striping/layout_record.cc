#include "striping/layout_record.h"

#include "striping/layout.h"
#include "trainfs/codec.h"

namespace trainfs::striping {
namespace {

constexpr uint8_t kHasChains = 1;
constexpr uint8_t kHasExists = 2;

void encodeComponent(Writer& writer, const Component& component) {
  uint8_t flags = 0;
  if (!component.chains.empty()) flags |= kHasChains;
  if (!component.exists.empty()) flags |= kHasExists;
  writer.put(component.startBytes).put(component.endBytes);
  writer.put(static_cast<uint8_t>(component.pattern)).put(flags);
  writer.put(component.stripeBytes).put(component.stripeCount).put(component.stripeOffset);
  writer.putString(component.pool);
  writer.put(static_cast<uint16_t>(component.ostList.size()));
  for (uint32_t ost : component.ostList) writer.put(ost);
  for (ChainId chain : component.chains) writer.put(chain.value);
  for (size_t i = 0; i < component.exists.size(); i += 8) {
    uint8_t bits = 0;
    for (size_t bit = 0; bit < 8 && i + bit < component.exists.size(); bit++)
      bits |= static_cast<uint8_t>(component.exists[i + bit]) << bit;
    writer.put(bits);
  }
}

void decodeExists(Reader& reader, Component& component) {
  component.exists.resize(component.stripeCount);
  for (size_t i = 0; i < component.exists.size(); i += 8) {
    auto bits = reader.get<uint8_t>();
    for (size_t bit = 0; bit < 8; bit++) {
      bool exists = bits >> bit & 1;
      if (i + bit < component.exists.size())
        component.exists[i + bit] = exists;
      else if (exists)
        reader.fail();
    }
  }
}

void decodeComponent(Reader& reader, Component& component) {
  component.startBytes = reader.get<uint64_t>();
  component.endBytes = reader.get<uint64_t>();
  component.pattern = static_cast<Pattern>(reader.get<uint8_t>());
  auto flags = reader.get<uint8_t>();
  component.stripeBytes = reader.get<uint64_t>();
  component.stripeCount = reader.get<uint32_t>();
  component.stripeOffset = reader.get<uint32_t>();
  component.pool = reader.getString(kPoolNameBytesMax);
  auto osts = reader.get<uint16_t>();
  if (osts > kStripesMax || (flags & ~(kHasChains | kHasExists)) != 0) return reader.fail();
  for (uint16_t i = 0; i < osts && reader.ok(); i++)
    component.ostList.push_back(reader.get<uint32_t>());
  if (flags == 0) return;
  // Checked before anything is sized by it; also refuses kStripeCountAll, which has no chains.
  if (component.stripeCount > kStripesMax) return reader.fail();
  if (flags & kHasChains)
    for (uint32_t i = 0; i < component.stripeCount && reader.ok(); i++)
      component.chains.push_back({reader.get<uint32_t>()});
  if (flags & kHasExists) decodeExists(reader, component);
}

}  // namespace

std::string encodeLayout(const Layout& layout) {
  Writer writer;
  writer.put(kLayoutRecordVersion).put(layout.generation);
  writer.put(static_cast<uint8_t>(layout.components.size()));
  for (const Component& component : layout.components) encodeComponent(writer, component);
  return writer.take();
}

Result<Layout> decodeLayout(std::string_view bytes) {
  Layout layout;
  if (bytes.empty()) return layout;
  Reader reader(bytes);
  if (reader.get<uint8_t>() != kLayoutRecordVersion) return Errno(EPROTO);
  layout.generation = reader.get<uint32_t>();
  auto count = reader.get<uint8_t>();
  if (count > kComponentsMax) return Errno(EPROTO);
  for (uint8_t i = 0; i < count && reader.ok(); i++)
    decodeComponent(reader, layout.components.emplace_back());
  if (!reader.finished() || !checkLayout(layout).empty()) return Errno(EPROTO);
  return layout;
}

}  // namespace trainfs::striping
