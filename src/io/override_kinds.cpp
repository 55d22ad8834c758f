// SPDX-License-Identifier: Apache-2.0
// Overrides of operator kinds and of data types, by what the operator table says of ports.
#include "src/io/override_kinds.hpp"

#include <algorithm>
#include <set>

#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "src/io/graph_links.hpp"
#include "src/ir/unknown_names.hpp"
#include "src/ir/verify_op.hpp"

namespace partita {
namespace {

using enum OpKind;

enum class Family { other, unary, binary, gradient };

Family family_of(const OpDef& def) {
  if (def.step != StepKind::loop || !def.expression || def.outputs.size() != 1 || def.operands != Operands::numpy) {
    return Family::other;
  }
  if (def.inputs.size() == 1) return def.inputs[0].type == def.outputs[0].type ? Family::unary : Family::other;
  if (def.inputs.size() != 2) return Family::other;
  if (find_attr(def, Attr::auto_broadcast)) return Family::binary;
  return def.name.ends_with("Backward") ? Family::gradient : Family::other;
}

std::string_view text_of(Family family) {
  switch (family) {
    case Family::unary: return "element-wise with one source";
    case Family::binary: return "element-wise with two sources";
    case Family::gradient: return "the gradient of an element-wise one";
    case Family::other: return "not element-wise";
  }
  return "not element-wise";
}

bool is_norm(OpKind kind) {
  switch (kind) {
    case BatchNormInference: case BatchNormForwardTraining: case BatchNormTrainingBackward:
    case LayerNorm: case LayerNormBackward: case GroupNorm: case RMSNorm: return true;
    default: return false;
  }
}

bool converts_types(OpKind kind) {
  switch (kind) {
    case TypeCast: case Quantize: case Dequantize: case DynamicQuantize: case DynamicDequantize: return true;
    default: return false;
  }
}

bool is_plain_float(Dtype dtype) { return dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::f16; }

template <size_t N>
std::string_view symbol_at(const Few<PortDef, N>& ports, size_t port) {
  return ports.empty() ? std::string_view() : ports[std::min(port, ports.size() - 1)].type;
}

/// Whether a port keeps its type while the graph changes to `dtype`.
bool keeps_type(const OpDef& def, std::string_view symbol, Dtype dtype) {
  if (symbol.empty()) return false;
  if (is_norm(def.kind) && symbol != def.inputs[0].type) return true;
  const auto* row = std::ranges::find(def.types, symbol, &TypeDef::symbol);
  return row != def.types.end() && !row->takes(dtype);
}

}  // namespace

Status change_kind(op& o, const Piece& kind) {
  const std::optional<OpKind> wanted = op_kind_named(kind.text);
  if (!wanted) {
    return kind.wrong(str("unknown operator kind `", kind.text, "`", similar_kind(kind.text)));
  }
  const OpDef &from = op_def(o.kind), &to = op_def(*wanted);
  if (from.kind != to.kind && (family_of(from) == Family::other || family_of(from) != family_of(to))) {
    return kind.wrong(str(from.name, " is ", text_of(family_of(from)), ", ", to.name, " is ", text_of(family_of(to)),
                          "; a kind changes only within one of the element-wise families"));
  }
  o.kind = to.kind;
  const std::vector<std::pair<Attr, AttrValue>> attrs = o.attrs();
  for (const auto& [attr, value] : attrs) {
    if (!find_attr(to, attr)) o.set_attr(attr, {});
  }
  return {};
}

Status remove_op(std::vector<op>& ops, size_t index, const Piece& why) {
  const op gone = ops[index];
  const std::string place = place_of(gone);
  if (gone.outputs.size() != 1 || gone.inputs.empty() || gone.inputs.size() > 2) {
    return why.wrong(str(place, " cannot be left out: only operators with one result and one or two sources can"));
  }
  PT_ASSIGN(const GraphLinks links, link_ops(ops));
  size_t source = 0;
  if (gone.inputs.size() == 2) {
    const bool first = !links.from_outside(gone.inputs[0].id), second = !links.from_outside(gone.inputs[1].id);
    if (first == second) {
      return why.wrong(str(place, " cannot be left out: exactly one of its two sources must be made inside the graph"));
    }
    source = first ? 0 : 1;
  }
  const logical_tensor &from = gone.inputs[source], &to = gone.outputs[0];
  if (from.dtype != to.dtype) {
    return why.wrong(str(place, " cannot be left out: it makes ", to.text(), " of ", from.text()));
  }
  if (links.from_outside(from.id) && !links.consumed.count(to.id)) {
    return why.wrong(str(place, " cannot be left out: nothing would remain of its branch"));
  }
  ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(index));
  for (op& o : ops) {
    for (logical_tensor& t : o.inputs) {
      if (t.id == to.id) t = from;
    }
  }
  return {};
}

Result<Dtype> parse_dtype(const Piece& piece) {
  const std::optional<Dtype> dtype = dtype_named(piece.text);
  if (dtype && *dtype != Dtype::undef) return *dtype;
  return piece.wrong(str("expected a data type, as in f32, found `", piece.text, "`"));
}

Status set_all_types(std::vector<op>& ops, const Piece& piece) {
  PT_ASSIGN(const Dtype dtype, parse_dtype(piece));
  if (!is_plain_float(dtype)) {
    return piece.wrong(str("expected f32, bf16 or f16 for the whole graph, found ", piece.text));
  }
  std::set<uint64_t> kept;
  for (const op& o : ops) {
    if (converts_types(o.kind)) {
      return piece.wrong(
          str(place_of(o), " converts types, so no single one fits the graph; give ID:type for each tensor"));
    }
    const OpDef& def = op_def(o.kind);
    for (size_t i = 0; i < o.inputs.size(); ++i) {
      if (keeps_type(def, symbol_at(def.inputs, i), dtype)) kept.insert(o.inputs[i].id);
    }
    for (size_t i = 0; i < o.outputs.size(); ++i) {
      if (keeps_type(def, symbol_at(def.outputs, i), dtype)) kept.insert(o.outputs[i].id);
    }
  }
  for (op& o : ops) {
    for (auto* side : {&o.inputs, &o.outputs}) {
      for (logical_tensor& t : *side) {
        if (is_plain_float(t.dtype) && !kept.count(t.id)) t.dtype = dtype;
      }
    }
  }
  return {};
}

}  // namespace partita
