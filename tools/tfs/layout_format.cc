#include "layout_format.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

#include "striping/layout.h"

namespace trainfs::tfs {
namespace {

constexpr const char* kIndent = "      ";

bool isComposite(const Layout& layout) {
  return layout.components.size() > 1 ||
         (layout.components.size() == 1 && layout.components[0].endBytes != kExtentEof);
}

// Stripe counts as lfs prints them: "all" is -1.
int64_t shownCount(const Component& component) {
  return component.stripeCount == kStripeCountAll ? int64_t{-1} : int64_t{component.stripeCount};
}

int64_t shownOffset(const Component& component) {
  if (component.instantiated()) return component.chains[0].value;
  if (!component.ostList.empty()) return component.ostList[0];
  return component.stripeOffset == kAnyOst ? -1 : static_cast<int64_t>(component.stripeOffset);
}

const char* patternName(Pattern pattern) {
  return pattern == Pattern::kMdt ? "mdt" : "raid0";
}

ObjectId objectOf(const Striped& striped, size_t component, uint32_t stripe) {
  return {striped.inode, striped.layout.generation, static_cast<uint8_t>(component), stripe};
}

// What getstripe calls objid and group: the low and the high half of the object's name.
uint64_t objectNumber(const ObjectId& object) {
  return uint64_t{object.generation} << 32 | uint64_t{object.component} << 24 | object.stripe;
}

bool hasObjectOn(const Component& component, uint32_t ost) {
  for (ChainId chain : component.chains)
    if (chain.value == ost) return true;
  return false;
}

class Formatter {
 public:
  Formatter(const Striped& striped, const Selection& selection)
      : striped_(striped), selection_(selection) {}

  std::string format();

 private:
  bool wants(uint32_t field) const { return selection_.fields & field; }
  bool wantsOnly(uint32_t field) const { return selection_.fields == field && !selection_.verbose; }
  std::string index(int64_t value) const {
    return value >= 0 && selection_.hexIndex ? fmt::format("{:#x}", value) : std::to_string(value);
  }
  // A field of the stripe block: on a line of its own, or, of a directory, in one line with the
  // others.
  void field(uint32_t which, const char* label, const std::string& value);
  void line(uint32_t which, const std::string& indent, const char* label, const std::string& value);

  void path();
  void detail();
  void stripeBlock(size_t index, bool composite);
  void objects(size_t index, bool composite);
  void plainRow(const ObjectId& object, ChainId chain);
  void composite();
  void componentHead(size_t index);
  std::optional<size_t> lastInitialized() const;
  bool selected(size_t index) const;

  const Striped& striped_;
  const Selection& selection_;
  std::string out_;
  std::string space_;      // before each field of the stripe block
  std::string separator_;  // before the next field
};

void Formatter::field(uint32_t which, const char* label, const std::string& value) {
  if (!wants(which)) return;
  out_ += separator_;
  if (!wantsOnly(which)) {
    std::string name = std::string(striped_.isDirectory ? "" : "lmm_") + label + ":";
    // Values are aligned as if every name had the prefix's length more or less.
    out_ += space_ + fmt::format("{:<{}}", name, striped_.isDirectory ? 15 : 19);
  }
  out_ += value;
  separator_ = striped_.isDirectory && !selection_.yaml ? " " : "\n";
}

void Formatter::line(uint32_t which, const std::string& indent, const char* label,
                     const std::string& value) {
  if (!wants(which)) return;
  std::string name = std::string(label) + ":";
  size_t width = name.rfind("lcme_", 0) == 0 ? 21 : 19;
  if (!wantsOnly(which)) out_ += indent + fmt::format("{:<{}}", name, width);
  out_ += value + "\n";
}

void Formatter::path() {
  bool objectsOnly = wantsOnly(kFieldObjects);
  if (selection_.showPath && !selection_.yaml && (!objectsOnly || !striped_.isDirectory))
    out_ += striped_.path + "\n";
}

// What -v and -F add before the stripe block.
void Formatter::detail() {
  if (!selection_.verbose && !wants(kFieldFid)) return;
  if (selection_.verbose && !striped_.isDirectory) {
    out_ += fmt::format("{}lmm_seq:           {:#x}\n", space_, striped_.inode.value >> 32);
    out_ += fmt::format("{}lmm_object_id:     {:#x}\n", space_, striped_.inode.value & 0xffffffff);
  }
  if (!wantsOnly(kFieldFid)) out_ += space_ + "lmm_fid:           ";
  std::string fid = fileFid(striped_.inode);
  out_ += (selection_.yaml ? fid : "[" + fid + "]") + "\n";
}

void Formatter::stripeBlock(size_t index, bool composite) {
  const Component& component = striped_.layout.components[index];
  bool unset = selection_.raw && striped_.inherited;
  space_ = composite ? kIndent : "";
  if (striped_.inherited && selection_.verbose && !composite) out_ += "(Default) ";
  detail();
  separator_.clear();
  field(kFieldStripeCount, "stripe_count", unset ? "0" : std::to_string(shownCount(component)));
  field(kFieldStripeSize, "stripe_size", unset ? "0" : std::to_string(component.stripeBytes));
  field(kFieldPattern, "pattern", patternName(component.pattern));
  if (!striped_.isDirectory)
    field(kFieldGeneration, "layout_gen",
          composite ? "0" : std::to_string(striped_.layout.generation));
  field(kFieldStripeOffset, "stripe_offset", unset ? "-1" : this->index(shownOffset(component)));
  if (!component.pool.empty() && !unset) field(kFieldPool, "pool", component.pool);
  if (!separator_.empty()) out_ += "\n";
  if (wants(kFieldObjects) && !unset) objects(index, composite);
  bool bare = (selection_.fields & (selection_.fields - 1)) == 0 && !wants(kFieldObjects);
  if (!selection_.yaml && !(bare && !selection_.showPath)) out_ += "\n";
}

void Formatter::plainRow(const ObjectId& object, ChainId chain) {
  std::string ost =
      selection_.hexIndex ? fmt::format("{:#6x}", chain.value) : fmt::format("{:6}", chain.value);
  uint64_t number = objectNumber(object);
  out_ += fmt::format("\t{}\t{:14}\t{:#13x}\t{:#14x}{}\n", ost, number, number, object.inode.value,
                      selection_.ost == chain.value ? " *" : "");
}

void Formatter::objects(size_t index, bool composite) {
  const Component& component = striped_.layout.components[index];
  bool table = !composite && !selection_.yaml;
  if (striped_.isDirectory) {  // only an OST list names anything
    if (component.ostList.empty() || !table) return;
    out_ += "\tobdidx\t\t objid\t\t objid\t\t group\n";
    for (uint32_t ost : component.ostList)
      out_ += fmt::format("\t{:6}\t{:>14}\t{:>13}\t{:>14}\n", ost, "N/A", "N/A", "N/A");
    return;
  }
  if (!component.instantiated()) return;
  out_ += table ? "\tobdidx\t\t objid\t\t objid\t\t group\n" : space_ + "lmm_objects:\n";
  for (uint32_t stripe = 0; stripe < component.chains.size(); stripe++) {
    ChainId chain = component.chains[stripe];
    if (selection_.ost && *selection_.ost != chain.value) continue;
    ObjectId object = objectOf(striped_, index, stripe);
    std::string ost = this->index(chain.value);
    if (selection_.yaml)
      out_ += fmt::format("{0}- l_ost_idx: {1}\n{0}  l_fid:     {2}\n", kIndent, ost,
                          objectFid(object));
    else if (composite)
      out_ += fmt::format("{}- {:3}: {{ l_ost_idx: {:>3}, l_fid: [{}] }}\n", kIndent, stripe, ost,
                          objectFid(object));
    else
      plainRow(object, chain);
  }
}

void Formatter::componentHead(size_t index) {
  const Component& component = striped_.layout.components[index];
  std::string id = striped_.isDirectory ? "N/A" : std::to_string(index + 1);
  bool eof = component.endBytes == kExtentEof;
  bool listed = selection_.yaml || selection_.verbose;
  if (selection_.yaml && !wants(kFieldComponentId))
    out_ += "  - lcme_id:             " + id + "\n";
  else
    line(kFieldComponentId, listed ? "  - " : "    ", "lcme_id", id);
  line(kFieldMirrorId, "    ", "lcme_mirror_id", striped_.isDirectory ? "N/A" : "0");
  line(kFieldComponentFlags, "    ", "lcme_flags", component.instantiated() ? "init" : "0");
  line(kFieldComponentStart, "    ", "lcme_extent.e_start", std::to_string(component.startBytes));
  line(kFieldComponentEnd, "    ", "lcme_extent.e_end",
       eof ? "EOF" : std::to_string(component.endBytes));
  if (listed) out_ += "    sub_layout:\n";
}

// The component that single fields are taken from: the last that has objects; of a directory, the
// last.
std::optional<size_t> Formatter::lastInitialized() const {
  const auto& components = striped_.layout.components;
  if (components.empty()) return std::nullopt;
  size_t last = 0;
  while (last + 1 < components.size() && components[last + 1].instantiated()) last++;
  return striped_.isDirectory ? components.size() - 1 : last;
}

bool Formatter::selected(size_t index) const {
  const Component& component = striped_.layout.components[index];
  if (selection_.componentId && *selection_.componentId != index + 1) return false;
  if (selection_.initialized && *selection_.initialized != component.instantiated()) return false;
  if (selection_.componentStart && !selection_.componentStart->admits(component.startBytes))
    return false;
  if (selection_.componentEnd && !selection_.componentEnd->admits(component.endBytes)) return false;
  return !selection_.ost || hasObjectOn(component, *selection_.ost);
}

void Formatter::composite() {
  constexpr uint32_t kHeader = kFieldGeneration | kFieldMirrorCount | kFieldComponentCount;
  std::string indent = selection_.yaml ? "" : "  ";
  path();
  if (selection_.verbose) out_ += "composite_header:\n";
  line(kFieldGeneration, indent, "lcm_layout_gen", std::to_string(striped_.layout.generation));
  line(kFieldMirrorCount, indent, "lcm_mirror_count", "1");
  bool plain = !isComposite(striped_.layout);
  line(kFieldComponentCount, indent, "lcm_entry_count",
       plain ? "0" : std::to_string(striped_.layout.components.size()));
  if (selection_.verbose || selection_.yaml) out_ += "components:\n";
  // Of the layout as a whole: there is nothing to say about single components.
  if ((selection_.fields & ~kHeader) == 0 && !selection_.verbose) return;

  bool all = (selection_.fields & kFieldsDefault) == kFieldsDefault ||
             selection_.filtersComponents() || wantsOnly(kFieldObjects);
  auto last = lastInitialized();
  for (size_t i = 0; i < striped_.layout.components.size(); i++) {
    if (all ? !selected(i) : i != last) continue;
    size_t before = out_.size();
    componentHead(i);
    bool headOnly =
        (selection_.fields & (kFieldStripeCount | kFieldStripeSize | kFieldStripeOffset |
                              kFieldPool | kFieldObjects | kFieldPattern | kFieldFid)) == 0;
    if (!headOnly || selection_.verbose || before == out_.size()) stripeBlock(i, true);
  }
}

std::string Formatter::format() {
  const auto& components = striped_.layout.components;
  if (components.empty()) return {};
  if (selection_.ost) {
    bool any = false;
    for (const Component& component : components) any |= hasObjectOn(component, *selection_.ost);
    if (!any || striped_.isDirectory) return {};
  }
  constexpr uint32_t kComponentFields = kFieldComponentCount | kFieldComponentId |
                                        kFieldComponentFlags | kFieldComponentStart |
                                        kFieldComponentEnd;
  bool asked = (selection_.fields & kFieldsDefault) != kFieldsDefault &&
               (selection_.fields & kComponentFields) != 0;
  if (isComposite(striped_.layout) || asked || selection_.filtersComponents()) {
    composite();
  } else {
    path();
    if (wantsOnly(kFieldMirrorCount))
      out_ += "1\n";
    else
      stripeBlock(0, false);
  }
  return out_;
}

}  // namespace

bool Bound::admits(uint64_t value) const {
  if (sign == '+') return value > bytes;
  if (sign == '-') return value < bytes;
  return value == bytes;
}

std::string fileFid(InodeId inode) {
  return fmt::format("{:#x}:{:#x}:0x0", inode.value >> 32, inode.value & 0xffffffff);
}

std::string objectFid(const ObjectId& object) {
  return fmt::format("{:#x}:{:#x}:{:#x}", object.inode.value, object.generation,
                     uint32_t{object.component} << 24 | object.stripe);
}

std::string formatStriped(const Striped& striped, const Selection& selection) {
  return Formatter(striped, selection).format();
}

nlohmann::json stripedJson(const Striped& striped) {
  nlohmann::json components = nlohmann::json::array();
  for (size_t i = 0; i < striped.layout.components.size(); i++) {
    const Component& component = striped.layout.components[i];
    nlohmann::json shown = {
        {"start", component.startBytes},
        {"end",
         component.endBytes == kExtentEof ? nlohmann::json() : nlohmann::json(component.endBytes)},
        {"pattern", patternName(component.pattern)},
        {"stripe_size", component.stripeBytes},
        {"stripe_count", shownCount(component)},
        {"stripe_offset", shownOffset(component)}};
    if (!component.pool.empty()) shown["pool"] = component.pool;
    if (!component.ostList.empty()) shown["osts"] = component.ostList;
    for (uint32_t stripe = 0; stripe < component.chains.size(); stripe++)
      shown["objects"].push_back(
          {{"ost", component.chains[stripe].value},
           {"fid", objectFid(objectOf(striped, i, stripe))},
           {"exists", stripe < component.exists.size() && component.exists[stripe]}});
    components.push_back(std::move(shown));
  }
  nlohmann::json shown = {{"path", striped.path},
                          {"type", striped.isDirectory ? "directory" : "file"},
                          {"fid", fileFid(striped.inode)},
                          {"components", components}};
  if (striped.isDirectory)
    shown["inherited"] = striped.inherited;
  else
    shown["generation"] = striped.layout.generation;
  return shown;
}

}  // namespace trainfs::tfs
