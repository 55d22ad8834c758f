// SPDX-License-Identifier: Apache-2.0
// OpDef: reading rows of the operator table.
#include "src/ir/op_def.hpp"

#include "src/base/text.hpp"

namespace partita {
namespace {

template <size_t N>
std::string port_name(const Few<PortDef, N>& ports, int i, std::string_view side) {
  const size_t at = static_cast<size_t>(i);
  if (ports.empty()) return str(side, " ", i);
  const PortDef& port = at < ports.size() ? ports[at] : ports[ports.size() - 1];
  if (port.arity == Arity::variadic) return str("`", port.name, "` (", side, " ", i, ")");
  return str("`", port.name, "`");
}

}  // namespace

std::string_view name_of(AttrType type) {
  switch (type) {
    case AttrType::boolean:
      return "bool";
    case AttrType::s64:
      return "s64";
    case AttrType::f32:
      return "f32";
    case AttrType::string:
      return "string";
    case AttrType::s64s:
      return "s64[]";
    case AttrType::f32s:
      return "f32[]";
  }
  return "unknown";
}

AttrValue value_of(const AttrLiteral& literal) {
  if (const auto* flag = std::get_if<bool>(&literal)) return *flag;
  if (const auto* number = std::get_if<int64_t>(&literal)) return *number;
  if (const auto* number = std::get_if<float>(&literal)) return *number;
  if (const auto* text = std::get_if<std::string_view>(&literal)) return std::string(*text);
  return {};
}

const AttrDef* find_attr(const OpDef& def, Attr attr) {
  for (const AttrDef& a : def.attrs) {
    if (a.key == attr) return &a;
  }
  return nullptr;
}

bool OpView::is_empty_list(Attr attr) const {
  const AttrValue& given = op_.attr(attr);
  const auto* ints = std::get_if<std::vector<int64_t>>(&given);
  const auto* floats = std::get_if<std::vector<float>>(&given);
  return (ints && ints->empty()) || (floats && floats->empty());
}

std::string input_name(const OpDef& def, int i) { return port_name(def.inputs, i, "input"); }
std::string output_name(const OpDef& def, int o) { return port_name(def.outputs, o, "output"); }

}  // namespace partita
