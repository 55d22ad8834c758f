// SPDX-License-Identifier: Apache-2.0
// Overrides in their order: kinds, attributes, input shapes and batch, inference, types, properties, math mode.
#include "src/io/overrides.hpp"

#include <algorithm>
#include <set>

#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "src/io/graph_links.hpp"
#include "src/io/override_kinds.hpp"
#include "src/io/override_shapes.hpp"
#include "src/io/override_syntax.hpp"
#include "src/ir/unknown_names.hpp"
#include "src/ir/verify_op.hpp"

namespace partita {
namespace {

class Editor {
 public:
  explicit Editor(const graph& g) : before_(g.ops()), ops_(g.ops()) {}

  Status set_kinds(std::string_view text);
  Status set_attrs(std::string_view text);
  Status set_shapes(std::string_view text);
  Status set_mb(std::string_view text);
  Status infer() { return infer_again(ops_, before_, fixed_); }
  Status set_types(std::string_view text);
  Status set_properties(std::string_view text);
  const std::vector<op>& ops() const { return ops_; }

 private:
  Result<size_t> find(const Entry& entry) const;
  Status set_shape(const Entry& entry, const GraphLinks& links);

  std::vector<op> before_;
  std::vector<op> ops_;
  std::set<uint64_t> fixed_;  // results whose shape was given
};

Result<size_t> Editor::find(const Entry& entry) const {
  for (size_t i = 0; i < ops_.size(); ++i) {
    if (ops_[i].id == entry.id) return i;
  }
  return entry.whole.wrong(str("no operator has the id ", entry.id));
}

Status Editor::set_kinds(std::string_view text) {
  PT_ASSIGN(const std::vector<Entry> entries, parse_entries("--op-kind", text));
  for (const Entry& entry : entries) {
    PT_ASSIGN(const size_t i, find(entry));
    if (entry.rest.text == "undef") {
      PT_TRY(remove_op(ops_, i, entry.rest));
    } else {
      PT_TRY(change_kind(ops_[i], entry.rest));
    }
  }
  return {};
}

Status Editor::set_attrs(std::string_view text) {
  PT_ASSIGN(const std::vector<Entry> entries, parse_entries("--op-attrs", text));
  for (const Entry& entry : entries) {
    PT_ASSIGN(const size_t i, find(entry));
    const OpDef& def = op_def(ops_[i].kind);
    PT_ASSIGN(const std::vector<AttrText> texts, parse_attr_texts(entry.rest));
    for (const AttrText& attr : texts) {
      const std::optional<Attr> key = attr_named(attr.name.text);
      const AttrDef* row = key ? find_attr(def, *key) : nullptr;
      if (!row) return attr.name.wrong(no_attribute(def, attr.name.text));
      PT_ASSIGN(AttrValue value, parse_attr(row->type, attr.value));
      ops_[i].set_attr(*key, std::move(value));
    }
  }
  return {};
}

Status Editor::set_shapes(std::string_view text) {
  PT_ASSIGN(const std::vector<Entry> entries, parse_entries("--in-shapes", text));
  PT_ASSIGN(const GraphLinks links, link_ops(ops_));
  for (const Entry& entry : entries) PT_TRY(set_shape(entry, links));
  return {};
}

Status Editor::set_shape(const Entry& entry, const GraphLinks& links) {
  PT_ASSIGN(const ShapeText shape, parse_shape(entry.rest));
  const std::map<uint64_t, logical_tensor> tensors = tensors_of(ops_);
  const auto it = tensors.find(entry.id);
  if (it == tensors.end()) return entry.whole.wrong(str("no tensor has the id ", entry.id));
  logical_tensor t = it->second;
  if (!links.from_outside(t.id)) {
    if (links.consumed.count(t.id)) {
      return entry.whole.wrong(str("tensor ", t.id, " is made by ", place_of(ops_[links.producer.at(t.id)]),
                                   "; only inputs and results of the graph take a shape"));
    }
    fixed_.insert(t.id);
  }
  t.layout = Layout::strided;
  if (shape.dims) {
    t.rank_known = true;
    t.dims = *shape.dims;
  }
  if (!t.shape_known()) return entry.rest.wrong(str("expected dims: those of tensor ", t.id, " are not known"));
  t.strides = dense_strides(t.dims);
  if (shape.tag) {
    PT_ASSIGN(t.strides, strides_of_tag(*shape.tag, t.dims));
  } else if (shape.strides) {
    if (shape.strides->size() != t.rank()) {
      return entry.rest.wrong(str("expected ", t.rank(), " strides, found ", shape.strides->size()));
    }
    t.strides = *shape.strides;
  }
  if (t.size_bytes() > static_cast<size_t>(std::numeric_limits<int64_t>::max())) {
    return entry.rest.wrong(str("the tensor is too large: ", t.text()));
  }
  each_use(ops_, t.id, [&](logical_tensor& use) {
    const Dtype dtype = use.dtype;
    const Property property = use.property;
    use = t;
    use.dtype = dtype;
    use.property = property;
  });
  return {};
}

Status Editor::set_mb(std::string_view text) {
  const Piece piece{"--mb", text, 0};
  PT_ASSIGN(const int64_t batch, parse_integer(piece));
  if (batch == 0) return {};  // benchdnn's spelling of "as it is"
  if (batch < 0) return piece.wrong(str("expected a positive number, found ", batch));
  PT_ASSIGN(const bool any, set_batch(ops_, batch));
  return any ? Status() : piece.wrong("no input of the graph carries the batch in dim 0");
}

Status Editor::set_types(std::string_view text) {
  if (text.find(':') == text.npos) return set_all_types(ops_, {"--dt", text, 0});
  PT_ASSIGN(const std::vector<Entry> entries, parse_entries("--dt", text));
  for (const Entry& entry : entries) {
    PT_ASSIGN(const Dtype dtype, parse_dtype(entry.rest));
    const bool found = each_use(ops_, entry.id, [&](logical_tensor& t) { t.dtype = dtype; });
    if (!found) return entry.whole.wrong(str("no tensor has the id ", entry.id));
  }
  return {};
}

Status Editor::set_properties(std::string_view text) {
  PT_ASSIGN(const std::vector<Entry> entries, parse_entries("--tensor-property", text));
  for (const Entry& entry : entries) {
    std::optional<Property> property;
    for (Property p : {Property::undef, Property::variable, Property::constant, Property::host_scalar}) {
      if (entry.rest.text == name_of(p)) property = p;
    }
    if (!property) {
      return entry.rest.wrong(str("expected undef, variable, constant or host_scalar, found `", entry.rest.text, "`"));
    }
    const bool found = each_use(ops_, entry.id, [&](logical_tensor& t) { t.property = *property; });
    if (!found) return entry.whole.wrong(str("no tensor has the id ", entry.id));
  }
  return {};
}

/// "mode[:bool]"
Status set_fpmath(std::string_view text, graph& g) {
  const std::vector<Piece> parts = Piece{"--attr-fpmath", text, 0}.split(':');
  bool apply_to_int = false;
  if (parts.size() > 2) return parts[2].wrong("expected mode[:bool]");
  if (parts.size() == 2) {
    PT_ASSIGN(apply_to_int, parse_bool(parts[1]));
  }
  for (FpMath mode : {FpMath::strict, FpMath::bf16, FpMath::f16, FpMath::any, FpMath::tf32}) {
    if (parts[0].text == name_of(mode)) return g.set_fpmath_mode(mode, apply_to_int);
  }
  return parts[0].wrong(str("expected strict, bf16, f16, any or tf32, found `", parts[0].text, "`"));
}

}  // namespace

bool Overrides::empty() const {
  return in_shapes.empty() && op_attrs.empty() && dt.empty() && mb.empty() && op_kind.empty() &&
         tensor_property.empty() && attr_fpmath.empty();
}

Result<graph> apply_overrides(const graph& g, const Overrides& o) {
  Editor editor(g);
  if (!o.op_kind.empty()) PT_TRY(editor.set_kinds(o.op_kind));
  if (!o.op_attrs.empty()) PT_TRY(editor.set_attrs(o.op_attrs));
  if (!o.in_shapes.empty()) PT_TRY(editor.set_shapes(o.in_shapes));
  if (!o.mb.empty()) PT_TRY(editor.set_mb(o.mb));
  const bool shapes_may_change = !o.op_kind.empty() || !o.op_attrs.empty() || !o.in_shapes.empty() || !o.mb.empty();
  if (shapes_may_change) PT_TRY(editor.infer());
  if (!o.dt.empty()) PT_TRY(editor.set_types(o.dt));
  if (!o.tensor_property.empty()) PT_TRY(editor.set_properties(o.tensor_property));
  graph out(g.engine_kind(), g.fpmath_mode());
  PT_TRY(out.set_fpmath_mode(g.fpmath_mode(), g.fpmath_apply_to_int()));
  if (!o.attr_fpmath.empty()) PT_TRY(set_fpmath(o.attr_fpmath, out));
  for (const op& changed : editor.ops()) PT_TRY(out.add_op(changed));
  return out;
}

}  // namespace partita
