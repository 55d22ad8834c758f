// SPDX-License-Identifier: Apache-2.0
// verify_op: one operator against its row of the table, in the order the header gives.
#include "src/ir/verify_op.hpp"

#include <algorithm>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/ir/op_def.hpp"
#include "src/ir/tensor_rules.hpp"
#include "src/ir/unknown_names.hpp"

namespace partita {
namespace {

Status wrong(std::string message) { return fail(Code::invalid_graph_op, std::move(message)); }

std::string names_of(DtypeSet types) {
  std::vector<std::string> names;
  for (int i = 0; i < 32; ++i) {
    if (types.bits >> i & 1u) names.emplace_back(name_of(static_cast<Dtype>(i)));
  }
  return join(names, ", ");
}

/// One side of an operator: its ports and the tensors given for them.
struct Side {
  std::span<const PortDef> ports;
  const std::vector<logical_tensor>& tensors;
  std::string_view word;
  std::string (*name)(const OpDef&, int);
  size_t variadic_limit;

  bool variadic() const { return !ports.empty() && ports.back().arity == Arity::variadic; }
  const PortDef& port(size_t i) const { return ports[std::min(i, ports.size() - 1)]; }
};

Status check_count(const OpDef& def, const Side& side) {
  size_t least = 0;
  std::vector<std::string> names;
  for (const PortDef& port : side.ports) {
    least += port.arity == Arity::one ? 1 : 0;
    names.push_back(port.arity == Arity::one        ? str("`", port.name, "`")
                    : port.arity == Arity::optional ? str("[`", port.name, "`]")
                                                    : str("`", port.name, "` .."));
  }
  // A list of tensors that is the operator's only input cannot be empty, except where anything goes (Wildcard).
  if (side.variadic() && side.variadic_limit > 0) least = 1;
  const size_t most = side.variadic() ? side.variadic_limit : side.ports.size();
  const size_t found = side.tensors.size();
  if (found >= least && (found <= most || (side.variadic() && most == 0))) return {};
  const std::string count = least == most ? str(least) : str(least, " to ", most);
  return wrong(str(def.name, " must have ", count, " ", side.word, most == 1 ? "" : "s",
                   names.empty() ? "" : str(" (", join(names, ", "), ")"), ", found ", found));
}

/// Clients of C interfaces give any number as a type.
Status check_numbers(const OpDef& def, const Side& side) {
  for (size_t i = 0; i < side.tensors.size(); ++i)
    if (const int number = static_cast<int>(side.tensors[i].dtype); number < 0 || number > static_cast<int>(Dtype::s64))
      return wrong(
          str(side.name(def, static_cast<int>(i)), " has data type number ", number, ", which does not exist"));
  return {};
}

Status check_tensors(const OpDef& def, const Side& side, bool written) {
  for (size_t i = 0; i < side.tensors.size(); ++i) {
    const logical_tensor& t = side.tensors[i];
    std::string fault = rank_fault(t);
    if (fault.empty()) fault = host_scalar_fault(t);
    if (fault.empty() && written) fault = overlap_fault(t);
    if (!fault.empty())
      return wrong(str(side.name(def, static_cast<int>(i)), " (tensor ", t.id, ", ", t.text(), "): ", fault));
  }
  return {};
}

/// The first port that a type symbol was seen at.
struct Bound {
  std::string_view symbol;
  Dtype type;
  std::string port;
};

Status check_types(const OpDef& def, const Side& side, std::vector<Bound>& bound) {
  for (size_t i = 0; i < side.tensors.size(); ++i) {
    const std::string_view symbol = side.port(i).type;
    const Dtype found = side.tensors[i].dtype;
    if (symbol.empty()) continue;
    const auto* row = std::ranges::find(def.types, symbol, &TypeDef::symbol);
    PT_ASSERT(row != def.types.end());
    const std::string port = side.name(def, static_cast<int>(i));
    if (!row->takes(found)) {
      return wrong(str(port, " must be of type ", names_of(row->types | row->extension), ", found ", name_of(found)));
    }
    const auto first = std::ranges::find(bound, symbol, &Bound::symbol);
    if (first == bound.end()) {
      bound.push_back({symbol, found, port});
    } else if (first->type != found) {
      return wrong(
          str(port, " must have the type of ", first->port, " (", name_of(first->type), "), found ", name_of(found)));
    }
  }
  return {};
}

AttrType type_of(const AttrValue& value) {
  if (std::holds_alternative<bool>(value)) return AttrType::boolean;
  if (std::holds_alternative<int64_t>(value)) return AttrType::s64;
  if (std::holds_alternative<float>(value)) return AttrType::f32;
  if (std::holds_alternative<std::string>(value)) return AttrType::string;
  return std::holds_alternative<std::vector<int64_t>>(value) ? AttrType::s64s : AttrType::f32s;
}

/// Dumps of oneDNN spell "not given" as a list of twelve zeros or ones; an optional list without entries says as
/// little.
bool is_placeholder(const AttrDef& def, const AttrValue& value) {
  if (def.need == Need::required) return false;
  if (const auto* floats = std::get_if<std::vector<float>>(&value)) return floats->empty();
  const auto* list = std::get_if<std::vector<int64_t>>(&value);
  if (!list) return false;
  if (list->empty()) return true;
  const int64_t filler = def.key == Attr::dilations ? 1 : 0;
  const bool shape_like = def.key == Attr::dilations || def.key == Attr::output_padding || def.key == Attr::src_shape ||
                          def.key == Attr::dst_shape || def.key == Attr::weights_shape;
  return shape_like && list->size() == size_t{kMaxRank} && std::ranges::count(*list, filler) == kMaxRank;
}

Status check_attr_value(const AttrDef& def, AttrValue& value) {
  const std::string_view name = name_of(def.key);
  if (type_of(value) != def.type) {
    return wrong(str("`", name, "` must be of type ", name_of(def.type), ", found ", name_of(type_of(value)), " ",
                     text_of(value)));
  }
  const auto* list = std::get_if<std::vector<int64_t>>(&value);
  if (list && def.key != Attr::zps && list->size() > size_t{kMaxRank}) {
    return wrong(str("`", name, "` must have at most ", kMaxRank, " entries, found ", list->size()));
  }
  if (def.allowed.empty()) return {};
  std::string& text = std::get<std::string>(value);
  const auto same = [&](std::string_view token) { return token == text; };
  if (std::ranges::any_of(def.allowed, same)) return {};
  if (const auto* alias = std::ranges::find_if(def.aliases, same); alias != def.aliases.end()) {
    text = def.allowed[static_cast<size_t>(alias - def.aliases.begin())];
    return {};
  }
  const std::span<const std::string_view> tokens(def.allowed.begin(), def.allowed.size());
  return wrong(
      str("`", name, "` must be one of ", join(tokens, ", "), ", found `", text, "`", suggestion(text, tokens)));
}

Status check_unknown_attrs(const OpDef& def, const op& o) {
  if (o.kind == OpKind::Wildcard) return {};
  for (const auto& [key, value] : o.attrs()) {
    if (find_attr(def, key)) continue;
    if (name_of(key) != "unknown") return wrong(no_attribute(def, name_of(key)));
    return wrong(str(def.name, " has no attribute number ", static_cast<int>(key)));
  }
  return {};
}

bool has_input_for(const OpDef& def, const op& o, Attr key) {
  for (size_t i = 0; i < o.inputs.size() && i < def.inputs.size(); ++i) {
    if (def.inputs[i].value_of == key) return true;
  }
  return false;
}

Result<Attrs> checked_attrs(const OpDef& def, const op& o) {
  Attrs attrs(o.attrs());
  for (const AttrDef& a : def.attrs) {
    if (a.need == Need::required && !attrs.has(a.key)) {
      return wrong(
          str("attribute `", name_of(a.key), "` (", name_of(a.type), ": ", a.text, ") is required, found none"));
    }
  }
  for (const AttrDef& a : def.attrs) {
    if (!attrs.has(a.key)) continue;
    AttrValue value = attrs.get(a.key);
    PT_TRY(check_attr_value(a, value));
    // The input wins over the attribute it stands for, and is moved into the attribute once its content is known.
    const bool dropped = is_placeholder(a, value) || has_input_for(def, o, a.key);
    attrs.set(a.key, dropped ? AttrValue() : std::move(value));
  }
  PT_TRY(check_unknown_attrs(def, o));
  for (const AttrDef& a : def.attrs) {
    if (!attrs.has(a.key) && a.fallback.index() != 0) attrs.set(a.key, value_of(a.fallback));
  }
  return attrs;
}

/// "axis=4, src is f32[2,3]" for what the sentence names in backquotes.
std::string facts(std::string_view sentence, const OpDef& def, const OpView& view) {
  std::vector<std::string> parts;
  while (true) {
    const size_t open = sentence.find('`');
    const size_t close = open == sentence.npos ? open : sentence.find('`', open + 1);
    if (close == sentence.npos) break;
    const std::string_view name = sentence.substr(open + 1, close - open - 1);
    sentence.remove_prefix(close + 1);
    const size_t before = parts.size();
    bool known = false;
    if (const std::optional<Attr> attr = attr_named(name); attr && find_attr(def, *attr)) {
      known = true;
      if (!view.attrs().has(*attr) && view.is_empty_list(*attr)) parts.push_back(str(name, " is empty"));
      if (view.attrs().has(*attr)) parts.push_back(str(name, "=", text_of(view.attrs().get(*attr))));
    }
    for (int side = 0; side < 2; ++side) {
      const std::span<const PortDef> ports = side == 0
                                                 ? std::span<const PortDef>(def.inputs.begin(), def.inputs.size())
                                                 : std::span<const PortDef>(def.outputs.begin(), def.outputs.size());
      for (int i = 0; i < static_cast<int>(ports.size()); ++i) {
        if (ports[static_cast<size_t>(i)].name != name) continue;
        known = true;
        if (i >= (side == 0 ? view.inputs() : view.outputs())) continue;
        parts.push_back(str(name, " is ", (side == 0 ? view.in(i) : view.out(i)).text()));
      }
    }
    if (known && parts.size() == before) parts.push_back(str(name, " is absent"));
  }
  return join(parts, ", ");
}

}  // namespace

Status run_checks(const OpDef& def, const OpView& view, Code code) {
  // Their elements are entries of a list: whoever reads them walks one axis.
  for (int i = 0; i < view.inputs() && i < static_cast<int>(def.inputs.size()); ++i)
    if (def.inputs[static_cast<size_t>(i)].value_of != Attr{0} && view.in(i).rank_known && view.in(i).rank() > 1)
      return fail(code, str(input_name(def, i), " must be 1-D, found ", view.in(i).text()));
  for (const CheckDef& check : def.checks) {
    if (check.holds(view)) continue;
    const std::string found = facts(check.sentence, def, view);
    return fail(code, found.empty() ? std::string(check.sentence) : str(check.sentence, ": ", found));
  }
  return {};
}

Result<Attrs> verify_op(const op& o) {
  const OpDef* def = find_op(o.kind);
  if (!def) return wrong(str("no operator has the kind number ", static_cast<int>(o.kind)));
  const size_t limit = static_cast<size_t>(def->max_variadic);
  const Side in{{def->inputs.begin(), def->inputs.size()}, o.inputs, "input", input_name, limit};
  const Side out{{def->outputs.begin(), def->outputs.size()}, o.outputs, "output", output_name, 0};
  std::vector<Bound> bound;
  PT_TRY(check_count(*def, in));
  PT_TRY(check_numbers(*def, in));
  PT_TRY(check_types(*def, in, bound));
  PT_TRY(check_count(*def, out));
  PT_TRY(check_numbers(*def, out));
  PT_TRY(check_types(*def, out, bound));
  PT_TRY(check_tensors(*def, in, false));
  // What a Wildcard stands for is not ours to write: its results may be views that repeat elements.
  PT_TRY(check_tensors(*def, out, o.kind != OpKind::Wildcard));
  PT_ASSIGN(Attrs attrs, checked_attrs(*def, o));
  PT_TRY(run_checks(*def, OpView(o, attrs), Code::invalid_graph_op));
  return attrs;
}

std::string place_of(const op& o) {
  const std::string name = o.name.empty() ? "" : str("'", o.name, "' ");
  return str("op ", o.id, " ", name, "(", name_of(o.kind), ")");
}

}  // namespace partita
