// SPDX-License-Identifier: Apache-2.0
// One operator for a person: what `partita ops NAME` prints.
#include <algorithm>

#include "partita/registry.hpp"
#include "src/base/text.hpp"
#include "src/ir/op_def.hpp"

namespace partita {
namespace {

std::string padded(std::string_view text, size_t width) {
  std::string result(text);
  result.resize(std::max(width, result.size()), ' ');
  return result;
}

std::string types_text(const OpDef& def, std::string_view symbol) {
  const auto* row = std::ranges::find(def.types, symbol, &TypeDef::symbol);
  if (row == def.types.end()) return "any type";
  const auto listed = [](DtypeSet types) {
    std::vector<std::string> names;
    for (int i = 0; i < 32; ++i) {
      if (types.has(static_cast<Dtype>(i))) names.emplace_back(name_of(static_cast<Dtype>(i)));
    }
    return join(names, " ");
  };
  const std::string more = listed(row->extension);
  return str(symbol, ": ", listed(row->types), more.empty() ? "" : "; extension: ", more);
}

template <size_t N>
std::string ports_text(const OpDef& def, std::string_view title, const Few<PortDef, N>& ports) {
  if (ports.empty()) return "";
  size_t width = 0;
  for (const PortDef& port : ports) width = std::max(width, port.name.size());
  std::string text = str("\n", title, "\n");
  for (const PortDef& port : ports) {
    const std::string_view arity = port.arity == Arity::optional   ? " (optional)"
                                   : port.arity == Arity::variadic ? " (any number)"
                                                                   : "";
    text += str("  ", padded(port.name, width), "  ", port.text, arity, port.extension ? " (extension)" : "", "  [",
                types_text(def, port.type), "]\n");
  }
  return text;
}

std::string attr_text(const AttrDef& attr, size_t width) {
  const std::string use = attr.need == Need::required  ? "required"
                          : attr.fallback.index() == 0 ? "optional"
                                                       : str("default ", text_of(value_of(attr.fallback)));
  std::string text = str("  ", padded(name_of(attr.key), width), "  ", padded(name_of(attr.type), 6), "  ", use,
                         is_extension(attr) ? ", extension; " : "; ", attr.text);
  const auto tokens = [](const auto& list) {
    return join(std::span<const std::string_view>(list.begin(), list.size()), ", ");
  };
  if (!attr.allowed.empty()) text += str("\n  ", padded("", width), "          one of ", tokens(attr.allowed));
  if (!attr.aliases.empty()) text += str(" (also spelt ", tokens(attr.aliases), ")");
  return text + "\n";
}

std::string attrs_text(const OpDef& def) {
  if (def.attrs.empty()) return "";
  size_t width = 0;
  for (const AttrDef& attr : def.attrs) width = std::max(width, name_of(attr.key).size());
  std::string text = "\nattributes\n";
  for (const AttrDef& attr : def.attrs) text += attr_text(attr, width);
  return text;
}

}  // namespace

std::string describe_op(OpKind kind) {
  const OpDef* def = find_op(kind);
  if (!def) return str("no operator has the kind number ", static_cast<int>(kind), "\n");
  std::string text =
      str(def->name, " (", static_cast<int>(def->kind), ", ",
          is_extension(kind) ? "extension" : str("dnnl_graph_op_", def->c_name), ")\n", def->summary, "\n");
  text += ports_text(*def, "inputs", def->inputs);
  text += ports_text(*def, "outputs", def->outputs);
  text += attrs_text(*def);
  if (!def->checks.empty()) text += "\nrules\n";
  for (const CheckDef& check : def->checks) text += str("  ", check.sentence, "\n");
  return text;
}

}  // namespace partita
